"""Refit: one model on all graphs, with the settings, epochs and temperature that a cross-validation selected."""

import copy
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from egin_dgl.cli.app import call_reproducibly, summary_head, train_all_folds
from egin_dgl.cli.experiment import expand_grid, make_experiment
from egin_dgl.cli.validation import validate_recorded, validate_settings
from egin_dgl.data.splits import Split
from egin_dgl.errors import ConfigError, escape_control
from egin_dgl.evaluation.calibration import pooled_temperature
from egin_dgl.evaluation.history import (
    FoldResult,
    History,
    best_validation_record,
    exact_mean,
    selected_record,
)
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.evaluation.protocols import has_epochs
from egin_dgl.files import check_links
from egin_dgl.parallel import use_processes
from egin_dgl.reporting.one_run.card import write_card
from egin_dgl.runs.reader import Run, read_run
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.schemas import ConformalRecord, read_conformal
from egin_dgl.runs.settings import RunSpec, Settings
from egin_dgl.terminal import make_console
from egin_dgl.training.parallel.resources import cores
from egin_dgl.training.parallel.workers import chunk_processes

EMPTY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class RefitPlan:
    """A refit that has not started."""

    spec: RunSpec  # its settings
    origin: Path  # directory of the cross-validation
    data_hash: str | None  # of the data it was trained on
    selected: dict[
        str, Any
    ]  # epochs or C, options that a nested run varied (chosen), temperature of all folds
    conformal: ConformalRecord | None  # scores of its test graphs


def plan_refit(
    origin: RunDir, device: str | None = None, trust: bool = False, config_dir: Path | None = None
) -> RefitPlan:
    """Read a finished cross-validation; arguments as of a command with run=DIR."""
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
    chosen: dict[str, Any] = {}
    settings = copy.deepcopy(spec.settings)
    results = [run.results[fold] for fold in sorted(run.results)]
    if any(result.chosen for result in results):
        chosen, settings, results = select_candidate(run, spec, trust)
    epochs, penalty = None, best_penalty([result.history for result in results])
    if penalty is not None:  # a kernel machine
        settings["model"]["penalties"] = [penalty]
    elif has_epochs(results[0].history):
        epochs = round(statistics.median(selected_record(result.history).epoch for result in results))
        settings["trainer"]["epochs"] = epochs
    settings["trainer"] |= {"patience": None, "fold_workers": 1}
    settings["cv"] |= {"refit": True, "fold": 0, "validation": False, "repeats": 1, "grid": None}
    settings["cv"] |= {"folds_file": None, "split_by": None, "group_duplicates": False, "holdout": False}
    if device is not None:
        settings["device"] = device
    spec = RunSpec(
        settings=validate_settings(settings, trust),
        overrides=["cv=refit", f"run={origin.path}"],
        choices=spec.choices | {"cv": "refit"},
        config_dir=spec.config_dir,
    )
    temperature = pooled_temperature(results)  # None without validation sets
    selected = {"epochs": epochs, "C": penalty, "chosen": chosen, "temperature": temperature}
    return RefitPlan(spec, origin.path, run.data_hash, selected, read_conformal(origin.summary))


def select_candidate(run: Run, spec: RunSpec, trust: bool) -> tuple[dict, Settings, list[FoldResult]]:
    """Return the candidate of a nested run with the best mean validation score: options, settings and folds."""
    found = []
    for number, (chosen, settings) in enumerate(expand_grid(spec.settings, spec.references, trust)):
        folds = [RunDir(run.folder).fold(fold).candidate(number).progress() for fold in sorted(run.results)]
        results = [fold for fold in folds if isinstance(fold, FoldResult)]
        if len(results) < len(folds):
            raise ConfigError(f"{run.folder}: folds are missing of the candidates to select from")
        best = [best_validation_record(result.history) for result in results]
        gain = METRICS[best[0].metric].gain(exact_mean([record.monitor_score for record in best]))
        found.append((gain, chosen, settings, results))
    return max(found, key=lambda entry: entry[0])[1:]


def best_penalty(histories: Sequence[History]) -> float | None:
    """Return the C with the best mean validation score, or without validation that of the folds; None for networks."""
    if selected_record(histories[0]).C is None or not histories[0][0].has_validation:
        return selected_record(histories[0]).C
    rows = zip(*histories, strict=True)
    metric = METRICS[histories[0][0].metric]
    return max(rows, key=lambda row: metric.gain(exact_mean([record.monitor_score for record in row])))[0].C


def train_refit(plan: RefitPlan, path: str | Path) -> dict:
    """Train on all graphs and write the run to a directory; called again, it resumes. Returns the summary."""
    return call_reproducibly(refit_here, plan.spec, plan, path)


def refit_here(spec: RunSpec, plan: RefitPlan, path: str | Path) -> dict:
    start = time.perf_counter()
    run, settings = RunDir(Path(path)), spec.settings
    if finished := run.load_finished(settings):
        print_refit(finished, run.path)
        return finished
    run.register(spec, refit_of=os.path.relpath(plan.origin, run.path))
    with use_processes(chunk_processes(len(cores()))):
        experiment = make_experiment(settings)
    dataset = experiment.dataset
    if plan.data_hash not in (None, dataset.digest):
        raise ConfigError(f"the data differs from that of {plan.origin}")
    run.register_data(experiment.model, dataset.info.name, dataset.digest)
    everything = Split(train=np.arange(len(dataset)), validation=EMPTY, test=EMPTY)
    (result,) = train_all_folds(experiment, {0: everything}, settings, run, None, is_single=True)
    # The temperature of the cross-validation, as no graph is left to fit one on.
    tensors, metadata = run.fold(0).load_tensors()
    run.fold(0).save_tensors(tensors, metadata | {"temperature": plan.selected["temperature"]})
    summary = {
        **summary_head(experiment, result, start),
        "task": dataset.info.task,
        "notes": list(dataset.notes),
        "skipped": list(dataset.skipped),
        "folds": 1,
        "headline": "refit",
        "protocols": {},
        "metrics": {},
        "refit": {
            "of": escape_control(plan.origin),
            "graphs": len(dataset),
            **plan.selected,
            "train_score": result.history[-1].train_score,
        },
        "validation_score": None,
        "conformal": plan.conformal,
    }
    run.finish(summary)
    write_card(run)
    print_refit(summary, run.path)
    return summary


def print_refit(summary: dict, path: Path) -> None:
    refit = summary["refit"]
    found = [f"{refit['epochs']} epochs"] if refit["epochs"] is not None else []
    found += [f"C = {refit['C']:g}"] if refit["C"] is not None else []
    found += [f"{key}={value}" for key, value in refit["chosen"].items()]
    graphs = f"{summary['model']} on all {refit['graphs']:,} graphs of {summary['dataset']}"
    found.append(f"as in {refit['of']}")
    lines = [f"{graphs}: {', '.join(found)}"]
    if refit["temperature"] is None:
        lines.append("probabilities are not calibrated: the run had no validation sets")
    lines.append(f"no graph is left for testing: expect the scores of that run; in {escape_control(path)}")
    for line in lines:
        make_console().print(line, highlight=False, soft_wrap=True)
