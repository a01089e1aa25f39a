"""One model on all graphs, with what a cross-validation settled: its settings, its epochs, its temperature."""

import logging
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from egin_dgl.cli.experiment import Experiment, make_experiment, points
from egin_dgl.cli.validation import BUILT
from egin_dgl.data.readers.download import DEFAULT_URL
from egin_dgl.data.splits import Split
from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.calibration import pooled_temperature
from egin_dgl.evaluation.history import History, best_on_validation, kept_record
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.models.registry import refuse_special, registered
from egin_dgl.named import meant
from egin_dgl.reporting.one_run.card import write_card
from egin_dgl.reporting.one_run.progress import FoldProgress
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.reader import Run, read_run
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import Settings, settings_of
from egin_dgl.training.job import FoldJob
from egin_dgl.training.parallel.resources import CpuBudget
from egin_dgl.training.parallel.workers import train_folds

log = logging.getLogger(__name__)

TAKEN = ("model", "dataset", "optimizer", "scheduler", "trainer", "ewl", "seed", "reproducible")
NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Settled:
    """What the folds of a run agree on."""

    settings: dict[str, object]  # those that an inner selection varied
    epochs: int | None  # None of a kernel machine
    penalty: float | None  # of a kernel machine
    temperature: float | None


def refit_config(cfg: DictConfig, before: Run, settled: Settled) -> DictConfig:
    """The configuration of the run, with what its folds settled."""
    made = cfg.copy()
    OmegaConf.set_struct(made, False)
    for name in TAKEN:  # replaced whole, not key by key
        made[name] = before.settings[name]
    made.trainer.patience = None
    made.trainer.fold_workers = 1
    for key, value in settled.settings.items():
        OmegaConf.update(made, key, value)
    if settled.penalty is not None:
        made.model.penalties = [settled.penalty]
    else:
        made.trainer.epochs = settled.epochs
    return made


def vet(settings: Settings) -> None:
    """A folder may come from anybody: what it names must be of this package or of torch, and nothing else in it is followed."""
    for name, node in settings.items():
        plain = dict(node) if isinstance(node, dict) else node
        if name in BUILT and isinstance(plain, dict):
            if target := plain.pop("_target_", None):
                registered(target, name)
            plain.pop("_partial_", None)
            if plain.get("url") not in (None, DEFAULT_URL):
                raise ConfigError("nothing is downloaded from an address that a folder names")
        refuse_special(plain, name)


def settle(run: Run, cfg: DictConfig) -> Settled:
    """Read the run: of a nested one the settings best in mean validation, else the run's own."""
    results = [run.results[fold] for fold in sorted(run.results)]
    if run.missing:
        raise ConfigError(f"{run.folder}: {run.reason}; resume={run.folder} finishes it first")
    settings: dict[str, object] = {}
    if any(result.chosen for result in results):
        settings, results = best_candidate(run, cfg)
    records = [kept_record(result.history) for result in results]
    temperature = pooled_temperature(results)
    if records[0].C is not None:
        return Settled(settings, None, best_penalty([result.history for result in results]), temperature)
    return Settled(settings, round(statistics.median(record.epoch for record in records)), None, temperature)


def best_candidate(run: Run, cfg: DictConfig) -> tuple[dict[str, object], list[FoldResult]]:
    """Of an inner selection: the settings whose validation score is best in the mean over folds, and its folds."""
    whole = OmegaConf.create({**run.settings})
    found = []
    for number, (chosen, _) in enumerate(points(whole)):
        folds = [RunDir(run.folder).fold(fold).candidate(number).progress() for fold in sorted(run.results)]
        results = [fold for fold in folds if isinstance(fold, FoldResult)]
        if len(results) < len(folds):
            raise ConfigError(f"{run.folder}: candidates of its folds are gone, by which settings are chosen")
        score = statistics.fmean(best_on_validation(result.history).chosen_by for result in results)
        found.append((score, chosen, results))
    _, chosen, results = max(found, key=lambda entry: entry[0])
    return chosen, results


def best_penalty(histories: Sequence[History]) -> float:
    """The C whose validation score is best in the mean over folds; without validation the one that folds kept."""
    if not histories[0][0].validated:
        kept = kept_record(histories[0]).C
    else:
        rows = list(zip(*histories, strict=True))
        kept = max(rows, key=lambda row: statistics.fmean(record.chosen_by for record in row))[0].C
    assert kept is not None  # rows of kernel machines have one
    return kept


def train_refit(cfg: DictConfig, folder: str | Path, share: CpuBudget | None = None) -> dict:
    """Train it, in `folder`; called again, it goes on where it was interrupted."""
    start = time.perf_counter()
    if not cfg.run:
        raise ConfigError(
            "cv=refit needs run=FOLDER, the folder of the cross-validation whose settings it takes"
        )
    place = meant(cfg.run)
    if not RunDir(place).holds_a_run:
        raise ConfigError(f"{place} is not the folder of a run: it has no run.json")
    before = read_run(place)
    if not before.results:
        raise ConfigError(f"{place}: {before.reason}; there is nothing to go by")
    if not cfg.trust:  # before the folds are read: the points of a grid are built too
        try:
            vet(before.settings)
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}; if you know who made the folder, add trust=true") from None
    settled = settle(before, cfg)
    cfg = refit_config(cfg, before, settled)
    run, settings = RunDir(Path(folder)), settings_of(cfg)
    if known := run.finished(settings):
        show_refit(known, run.path)
        return known
    experiment = make_experiment(cfg)
    dataset = experiment.dataset
    if before.data_hash is not None and before.data_hash != dataset.digest:
        raise ConfigError(f"the data is not what {place} was trained on")
    run.claim(experiment.model, dataset.info.name, dataset.digest, settings)
    result = train_on_all(experiment, run.fold(0), cfg.seed, share)
    keep_temperature(run.fold(0), settled.temperature)
    summary = {
        "model": experiment.model,
        "dataset": dataset.info.name,
        "seed": cfg.seed,
        "parameters": result.parameters,
        "seconds": time.perf_counter() - start,
        "device": str(experiment.device),
        "notes": list(dataset.notes),
        "folds": 1,
        "headline": "refit",
        "protocols": {},
        "metrics": {},
        "refit": {
            "of": str(place),
            "graphs": len(dataset),
            "epochs": settled.epochs,
            "C": settled.penalty,
            "chosen": settled.settings,
            "temperature": settled.temperature,
            "train_accuracy": result.history[-1].train_accuracy,
        },
        "validation_score": None,
    }
    run.end(summary)
    write_card(run)
    show_refit(summary, run.path)
    return summary


def train_on_all(experiment: Experiment, folder: FoldDir, seed: int, share: CpuBudget | None) -> FoldResult:
    everything = np.arange(len(experiment.dataset))
    job = FoldJob(
        fold=0,
        seed=seed,
        split=Split(train=everything, validation=NONE, test=NONE),
        folder=folder,
        train=experiment.train,
        device=experiment.device,
        recipe=experiment.recipe,
    )
    with FoldProgress({0: folder.epochs}, experiment.epochs) as progress:
        return train_folds(experiment.dataset, [job], progress, share or CpuBudget(1))[0]


def keep_temperature(folder: FoldDir, temperature: float | None) -> None:
    """That of the folds together, as no graph is left to learn one on."""
    tensors, metadata = folder.load_tensors()
    folder.save_tensors(tensors, metadata | {"temperature": temperature})


def show_refit(summary: dict, folder: Path) -> None:
    refit = summary["refit"]
    long = f"{refit['epochs']} epochs" if refit["epochs"] is not None else f"C = {refit['C']:g}"
    chosen = "".join(f", {key}={value}" for key, value in refit["chosen"].items())
    console = Console()
    console.print(
        f"{summary['model']} on all {refit['graphs']:,} graphs of {summary['dataset']}: {long}{chosen}, as in {refit['of']}",
        highlight=False,
        soft_wrap=True,
    )
    if refit["temperature"] is None:
        console.print(
            "its probabilities are not calibrated: the run kept no validation scores", highlight=False
        )
    console.print(f"nothing was left to test on: expect what that run measured; in {folder}", soft_wrap=True)
