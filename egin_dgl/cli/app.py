"""The training app: the one place that turns a configuration into calls of the library."""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from omegaconf import DictConfig
from rich.console import Console

from egin_dgl import arithmetic
from egin_dgl.cli.experiment import Experiment, make_experiment
from egin_dgl.cli.refit import train_refit
from egin_dgl.cli.splitting import check_cutting, groups_of, warn_of
from egin_dgl.cli.validation import checked
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.splits import Folds, Split, fold_numbers, folds_from_column, load_folds, make_folds
from egin_dgl.errors import DataError
from egin_dgl.evaluation.predictions import predictions_of
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.evaluation.summary import confusion_counts, summarize
from egin_dgl.files import move_aside
from egin_dgl.imports import import_in_background
from egin_dgl.named import written
from egin_dgl.reporting.dataset_summary import data_line, hints
from egin_dgl.reporting.one_run.card import write_card
from egin_dgl.reporting.one_run.progress import FoldProgress
from egin_dgl.reporting.one_run.terminal import metrics_line, summary_table
from egin_dgl.runs.predictions_file import write_predictions
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import mapping_of, settings_of
from egin_dgl.training.job import FoldJob
from egin_dgl.training.parallel.fresh_process import in_fresh_process
from egin_dgl.training.parallel.resources import CpuBudget, cores
from egin_dgl.training.parallel.workers import train_folds

log = logging.getLogger(__name__)

PUBLISHING = "egin_dgl.reporting.one_run.publish"  # with matplotlib, which takes a while to load


def train(cfg: DictConfig, folder: str | Path, share: CpuBudget | None = None) -> dict:
    """Cross-validate as `cfg` says; everything there is to know about the run is in `folder` afterwards.

    Called again with the same configuration and folder, it goes on where it was interrupted. `share` is what it may use
    of the machine: all cores, if not said; `trainer.fold_workers` wins over its number of workers. Where `reproducible` asks
    for arithmetic other than this process's, the run has a process of its own.
    """
    cfg = checked(cfg)
    reproducible = cfg.reproducible
    run = train_refit if cfg.cv.get("refit") else cross_validate
    if not arithmetic.computes(reproducible):
        return in_fresh_process(reproducible, run, cfg, folder, share)
    return run(cfg, folder, share)


def cross_validate(cfg: DictConfig, folder: str | Path, share: CpuBudget | None = None) -> dict:
    """The run itself, in this process and its fold workers, as six steps."""
    start = time.perf_counter()
    run, settings = RunDir(Path(folder)), settings_of(cfg)
    if before := run.finished(settings):
        run.mend()
        show(before, run.path)
        return before
    experiment = make_experiment(cfg)
    dataset = experiment.dataset
    tell(dataset, cfg)
    run.claim(experiment.model, dataset.info.name, dataset.digest, settings)
    folds, splits = cut(dataset, cfg, run)
    results = train_all(experiment, splits, cfg, run, share)
    from egin_dgl.reporting.one_run.publish import publish  # here: see `train_all`

    summary = {
        "model": experiment.model,
        "dataset": dataset.info.name,
        "seed": cfg.seed,
        "parameters": results[0].parameters,
        "seconds": time.perf_counter() - start,
        "device": str(experiment.device),
        "majority_accuracy": dataset.majority_accuracy,
        "holdout": bool(cfg.cv.get("holdout")),
    } | summarize(results, folds.k, cfg.cv.validation)
    histories = [result.history for result in results]
    counts, names = confusion_counts(results), dataset.info.class_names
    write_predictions(run.predictions, predictions_of(results, splits), dataset.names, names)
    publish(run, summary, settings, histories, counts, names, cfg.get("fold_curves", False))
    write_card(run)
    show(summary, run.path)
    return summary


def tell(dataset: GraphDataset, cfg: DictConfig) -> None:
    """What was read, on stderr as all that is told on the way."""
    said = hints(
        dataset, cfg.trainer.standardize, bool(cfg.trainer.class_weights), cfg.model.get("attributes")
    )
    for line in (data_line(dataset), *said):
        Console(stderr=True).print(line, soft_wrap=True, highlight=False)


def cut(dataset: GraphDataset, cfg: DictConfig, run: RunDir) -> tuple[Folds, dict[int, Split]]:
    """The folds made here before, those of a file or of the data, or new ones; and the parts of each that is to be run.

    They are kept with the run, once it is sure that those asked for are there.
    """
    labels = dataset.labels.numpy()
    check_cutting(dataset, cfg.cv)
    if cfg.cv.folds_file:
        folds = load_folds(cfg.cv.folds_file, labels, dataset.info.name)
    elif before := folds_before(run, dataset):
        folds = before
    elif dataset.splits:
        folds = folds_from_column(dataset.splits, labels, cfg.seed, dataset.info.name)
    else:
        groups = groups_of(dataset, cfg.cv)
        folds = make_folds(labels, cfg.cv.k, cfg.seed, dataset.info.name, groups, cfg.cv.repeats)
    warn_of(folds, dataset, by_groups=bool(cfg.cv.get("split_by")))
    chosen = mapping_of(cfg.cv).get("fold")
    every = [0] if folds.fixed else range(len(folds.indices))
    numbers = every if chosen is None else fold_numbers(chosen)
    splits = {number: folds.split(number, cfg.cv.validation) for number in numbers}
    folds.save(run.folds, dataset.ids)
    return folds, splits


def folds_before(run: RunDir, dataset: GraphDataset) -> Folds | None:
    """Those that were made here; None where there are none, or where they are damaged: the same are made again."""
    if not run.folds.exists():
        return None
    try:
        return load_folds(run.folds, dataset.labels.numpy(), dataset.info.name)
    except DataError as error:
        log.warning("%s; it is put aside and made again", error)
        move_aside(run.folds)
        return None


def train_all(
    experiment: Experiment, splits: Mapping[int, Split], cfg: DictConfig, run: RunDir, share: CpuBudget | None
) -> list[FoldResult]:
    """All folds, side by side on the cores of the run's share."""
    share = share or CpuBudget(len(cores()))
    if cfg.trainer.fold_workers:
        share = replace(share, workers=cfg.trainer.fold_workers)
    jobs = [
        FoldJob(
            fold=number,
            seed=cfg.seed,
            split=split,
            folder=run.fold(number),
            train=experiment.train,
            device=experiment.device,
            recipe=experiment.recipe,
        )
        for number, split in splits.items()
    ]
    before = {job.fold: job.folder.epochs for job in jobs}
    with FoldProgress(before, experiment.epochs) as progress:
        if min(share.workers, len(jobs)) > 1:
            import_in_background(PUBLISHING, "scipy.optimize")
        return train_folds(experiment.dataset, jobs, progress, share)


def show(summary: dict, folder: Path) -> None:
    console = Console()
    console.print(summary_table(summary, console.width))
    console.print(metrics_line(summary), highlight=False)
    console.print(
        f"{summary['parameters']:,} parameters, {summary['seconds']:.1f} s, in",
        written(folder),
        soft_wrap=True,
    )
