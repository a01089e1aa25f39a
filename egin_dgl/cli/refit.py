"""Refit: one model on all graphs, with the settings, epochs and temperature that a cross-validation selected."""

import copy
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from egin_dgl import reproducibility
from egin_dgl.cli.app import train_all_folds
from egin_dgl.cli.experiment import expand_grid, make_experiment
from egin_dgl.cli.run_specs import validate_recorded
from egin_dgl.cli.validation import validate_settings
from egin_dgl.data.splits import Split
from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.calibration import pooled_temperature
from egin_dgl.evaluation.history import History, best_validation_record, selected_record
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.reporting.one_run.card import write_card
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.reader import Run, read_run
from egin_dgl.runs.run_dir import RunDir, check_links
from egin_dgl.runs.settings import RunSpec, Settings
from egin_dgl.text import escape_control
from egin_dgl.training.parallel.processes import run_in_fresh_process
from egin_dgl.training.parallel.resources import CpuBudget

EMPTY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class RefitPlan:
    """A refit that has not started.

    Args:
        spec: settings of the refit.
        origin: directory of the cross-validation.
        data_hash: of the data it was trained on.
        selected: options that the inner selection of a nested run varied.
        epochs: median of the selected epochs; None for a kernel machine.
        penalty: C of a kernel machine.
        temperature: of all folds together; None without validation sets.
    """

    spec: RunSpec
    origin: Path
    data_hash: str | None
    selected: dict[str, object]
    epochs: int | None
    penalty: float | None
    temperature: float | None


def plan_refit(
    origin: RunDir, device: str | None = None, trust: bool = False, config_dir: Path | None = None
) -> RefitPlan:
    """Read a finished cross-validation.

    Args:
        origin: its directory.
        device: device of the refit. Default: that of the cross-validation.
        trust: allow the directory to name classes that are not of egin_dgl or torch. Default: False.
        config_dir: directory with code of the user, if the cross-validation had one.
    """
    if not origin.exists:
        raise ConfigError(f"{origin.path} is not the directory of a run: it has no run.json")
    if not trust:
        check_links(origin.path)
    spec = validate_recorded(origin.load_spec(), origin.path, trust, config_dir)
    run = read_run(origin.path)
    if not run.results:
        raise ConfigError(f"{origin.path}: {run.reason}; there is nothing to refit")
    if run.missing:
        raise ConfigError(f"{origin.path}: {run.reason}; resume={origin.path} finishes it first")
    selected: dict[str, object] = {}
    settings = copy.deepcopy(spec.settings)
    results = [run.results[fold] for fold in sorted(run.results)]
    if any(result.chosen for result in results):
        selected, settings, results = select_candidate(run, spec, trust)
    if (penalty := best_penalty([result.history for result in results])) is not None:
        epochs = None
        settings["model"]["penalties"] = [penalty]
    else:
        epochs = round(statistics.median(selected_record(result.history).epoch for result in results))
        settings["trainer"]["epochs"] = epochs
    settings["trainer"] |= {"patience": None, "fold_workers": 1}
    settings["cv"] |= {"refit": True, "fold": 0, "validation": False, "repeats": 1, "grid": None}
    settings["cv"] |= {"folds_file": None, "split_by": None, "group_duplicates": False, "holdout": False}
    if device is not None:
        settings["device"] = device
    overrides = ["cv=refit", f"run={origin.path}"]
    spec = RunSpec(
        validate_settings(settings, trust), {}, overrides, spec.choices | {"cv": "refit"}, spec.config_dir
    )
    return RefitPlan(spec, origin.path, run.data_hash, selected, epochs, penalty, pooled_temperature(results))


def select_candidate(
    run: Run, spec: RunSpec, trust: bool
) -> tuple[dict[str, object], Settings, list[FoldResult]]:
    """Return the candidate of a nested run with the best mean validation score: options, settings and folds."""
    found = []
    for number, (chosen, settings) in enumerate(expand_grid(spec.settings, spec.references, trust)):
        folds = [RunDir(run.folder).fold(fold).candidate(number).progress() for fold in sorted(run.results)]
        results = [fold for fold in folds if isinstance(fold, FoldResult)]
        if len(results) < len(folds):
            raise ConfigError(
                f"{run.folder}: folds of candidates are missing, by which settings are selected"
            )
        score = statistics.fmean(best_validation_record(result.history).monitor_score for result in results)
        found.append((score, chosen, settings, results))
    return max(found, key=lambda entry: entry[0])[1:]


def best_penalty(histories: Sequence[History]) -> float | None:
    """Return the C with the best mean validation score, or without validation that of the folds; None for networks."""
    if selected_record(histories[0]).C is None or not histories[0][0].has_validation:
        return selected_record(histories[0]).C
    rows = zip(*histories, strict=True)
    return max(rows, key=lambda row: statistics.fmean(record.monitor_score for record in row))[0].C


def train_refit(plan: RefitPlan, path: str | Path, budget: CpuBudget | None = None) -> dict:
    """Train on all graphs and write the run to a directory; called again, it resumes. Returns the summary."""
    reproducible = plan.spec.settings["reproducible"]
    if not reproducibility.is_active(reproducible):
        return run_in_fresh_process(reproducible, refit_here, plan, path, budget)
    return refit_here(plan, path, budget)


def refit_here(plan: RefitPlan, path: str | Path, budget: CpuBudget | None) -> dict:
    start = time.perf_counter()
    run, settings = RunDir(Path(path)), plan.spec.settings
    if finished := run.load_finished(settings):
        print_refit(finished, run.path)
        return finished
    run.register(plan.spec, refit_of=os.path.relpath(plan.origin, run.path))
    experiment = make_experiment(settings)
    dataset = experiment.dataset
    if plan.data_hash not in (None, dataset.digest):
        raise ConfigError(f"the data differs from that of {plan.origin}")
    run.register_data(experiment.model, dataset.info.name, dataset.digest)
    everything = Split(train=np.arange(len(dataset)), validation=EMPTY, test=EMPTY)
    (result,) = train_all_folds(experiment, {0: everything}, settings, run, budget)
    save_temperature(run.fold(0), plan.temperature)
    summary = {
        "model": experiment.model,
        "dataset": dataset.info.name,
        "seed": settings["seed"],
        "parameters": result.parameters,
        "seconds": time.perf_counter() - start,
        "device": str(experiment.device),
        "notes": list(dataset.notes),
        "folds": 1,
        "headline": "refit",
        "protocols": {},
        "metrics": {},
        "refit": {
            "of": escape_control(plan.origin),
            "graphs": len(dataset),
            "epochs": plan.epochs,
            "C": plan.penalty,
            "chosen": plan.selected,
            "temperature": plan.temperature,
            "train_accuracy": result.history[-1].train_accuracy,
        },
        "validation_score": None,
    }
    run.finish(summary)
    write_card(run)
    print_refit(summary, run.path)
    return summary


def save_temperature(folder: FoldDir, temperature: float | None) -> None:
    """Save the temperature of the cross-validation, as no graph is left to fit one on."""
    tensors, metadata = folder.load_tensors()
    folder.save_tensors(tensors, metadata | {"temperature": temperature})


def print_refit(summary: dict, path: Path) -> None:
    refit, console = summary["refit"], Console()
    duration = f"{refit['epochs']} epochs" if refit["epochs"] is not None else f"C = {refit['C']:g}"
    selected = "".join(f", {key}={value}" for key, value in refit["chosen"].items())
    console.print(
        f"{summary['model']} on all {refit['graphs']:,} graphs of {summary['dataset']}: {duration}{selected}, as in "
        f"{refit['of']}",
        highlight=False,
        soft_wrap=True,
    )
    if refit["temperature"] is None:
        console.print("probabilities are not calibrated: the run had no validation sets", highlight=False)
    console.print(
        f"no graph is left for testing: expect the scores of that run; in {escape_control(path)}",
        soft_wrap=True,
    )
