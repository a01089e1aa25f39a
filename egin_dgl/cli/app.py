"""The training app: from recorded settings to calls of the library."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from egin_dgl import reproducibility
from egin_dgl.backend import import_in_background
from egin_dgl.cli.experiment import Experiment, make_experiment
from egin_dgl.cli.ranks import pick_ranks
from egin_dgl.cli.splitting import make_splits
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.splits import Split
from egin_dgl.errors import ConfigError, escape_control
from egin_dgl.evaluation.calibration import summarize_calibration
from egin_dgl.evaluation.history import FoldResult
from egin_dgl.evaluation.summary import summarize, test_predictions
from egin_dgl.parallel import use_processes
from egin_dgl.reporting.dataset_summary import data_line, hints
from egin_dgl.reporting.formatting import pluralize
from egin_dgl.reporting.one_run.card import write_card
from egin_dgl.reporting.one_run.progress import FoldProgress
from egin_dgl.reporting.one_run.terminal import metrics_line, summary_table, targets_table
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import RunSpec, Settings, result_settings, trains_in_epochs
from egin_dgl.tasks import TASKS
from egin_dgl.tasks.task import baseline_score, score_predictions
from egin_dgl.terminal import make_console
from egin_dgl.training.device import max_workers
from egin_dgl.training.parallel.processes import run_in_fresh_process
from egin_dgl.training.parallel.rank_processes import torchrun_size
from egin_dgl.training.parallel.resources import CpuBudget, cores
from egin_dgl.training.parallel.workers import chunk_processes, train_folds

PUBLISH_MODULE = "egin_dgl.reporting.one_run.publish"  # imports matplotlib, which is slow


def train(spec: RunSpec, path: str | Path, budget: CpuBudget | None = None, trust: bool = True) -> dict:
    """Cross-validate a model and write the run to a directory; called again with the same settings, it resumes.

    Args:
        spec: validated settings.
        path: directory of the run.
        budget: CPU cores to use; `trainer.fold_workers` overrides its number of workers. Default: all cores.
        trust: allow a grid to name classes that are not of egin_dgl or torch. Default: True.

    Returns:
        The content of summary.json.
    """
    if spec.settings["cv"].get("refit"):
        raise ConfigError("cv=refit needs run=DIR, the directory of a cross-validation")
    return call_reproducibly(cross_validate, spec, path, budget, trust)


def call_reproducibly(function: Callable[..., dict], spec: RunSpec, *arguments: Any) -> dict:
    """Call a function, in a process of its own if `reproducible` requests another arithmetic than that of this one."""
    reproducible = spec.settings["reproducible"]
    if reproducibility.is_active(reproducible):
        return function(spec, *arguments)
    if torchrun_size():
        raise ConfigError(f"with torchrun, give reproducible={reproducible} on the command line")
    return run_in_fresh_process(reproducible, function, spec, *arguments)


def cross_validate(spec: RunSpec, path: str | Path, budget: CpuBudget | None, trust: bool) -> dict:
    """Run `train` in this process and its fold workers."""
    start = time.perf_counter()
    run, settings = RunDir(Path(path)), spec.settings
    if finished := run.load_finished(settings):
        print_summary(finished, run.path)
        return finished
    run.register(spec)
    with use_processes(chunk_processes(budget.workers if budget else len(cores()))):
        experiment = make_experiment(settings, spec.references, trust)
    dataset = experiment.dataset
    log_dataset(dataset, settings)
    run.register_data(experiment.model, dataset.info.name, dataset.digest)
    folds, splits = make_splits(dataset, settings, run)
    if hint := ema_hint(settings, min(len(split.train) for split in splits.values())):
        print_hint(hint)
    is_single = bool(folds.fixed or settings["cv"].get("holdout"))
    results = train_all_folds(experiment, splits, settings, run, budget, is_single)
    from egin_dgl.reporting.one_run.publish import publish  # see PUBLISH_MODULE

    task = TASKS[dataset.info.task]
    predictions = list(test_predictions(results, splits))
    summary = {
        **summary_head(experiment, results[0], start),
        "baseline": baseline_score(
            task, dataset.labels, dataset.info, splits.values(), settings["trainer"]["monitor"]
        ),
        "holdout": is_single,
        "notes": list(dataset.notes),
        "skipped": list(dataset.skipped),
        **summarize(results, task.metrics, folds.k, settings["cv"]["validation"], dataset.info.target_names),
        "calibration": summarize_calibration(results, splits),
        "conformal": score_predictions(task, predictions, folds.k),
    }
    run.save_predictions(predictions, dataset.names, dataset.info)
    keep_folds = settings.get("fold_curves", False)
    publish(run, summary, result_settings(settings), results, predictions, dataset.info, keep_folds)
    write_card(run)
    print_summary(summary, run.path)
    return summary


def summary_head(experiment: Experiment, result: FoldResult, start: float) -> dict:
    return {
        "model": experiment.model,
        "dataset": experiment.dataset.info.name,
        "seed": experiment.seed,
        "parameters": result.parameters,
        "task": experiment.dataset.info.task,
        "seconds": time.perf_counter() - start,
        "device": str(experiment.device),
    }


def log_dataset(dataset: GraphDataset, settings: Settings) -> None:
    trainer = settings["trainer"]
    attributes = settings["model"].get("attributes")
    lines = hints(dataset, trainer["standardize"], bool(trainer["class_weights"]), attributes)
    if settings["task"] == "auto":
        others = ", ".join(f"task={name}" for name in TASKS if name != dataset.info.task)
        lines.insert(0, f"task={dataset.info.task}, decided from the targets; to choose another: {others}")
    for line in (data_line(dataset), *lines):
        print_hint(line)


def ema_hint(settings: Settings, graphs: int) -> str | None:
    """A sentence for a network whose EMA weights, over a training set of this size, lag behind to the last step."""
    trainer = settings["trainer"]
    epochs, decay, steps = trainer["epochs"], trainer["ema_decay"], -(-graphs // trainer["batch_size"])
    if decay is None or not trains_in_epochs(settings) or epochs * steps * (1 - decay) >= 3:
        return None
    return (
        f"a fold has only {pluralize(epochs * steps, 'step')}: EMA weights with trainer.ema_decay={decay:g} lag behind the last "
        "weights, which trainer.ema_decay=null evaluates"
    )


def print_hint(line: str) -> None:
    make_console(stderr=True).print(line, soft_wrap=True, highlight=False)


def train_all_folds(
    experiment: Experiment,
    splits: Mapping[int, Split],
    settings: Settings,
    run: RunDir,
    budget: CpuBudget | None,
    is_single: bool,
) -> list[FoldResult]:
    """Train folds; `is_single`: there is one split, not a fold of a cross-validation."""
    budget = budget or CpuBudget(len(cores()))
    budget = replace(budget, ranks=pick_ranks(experiment, splits, settings, budget.workers, run, is_single))
    if workers := settings["trainer"]["fold_workers"] or max_workers(experiment.device):
        budget = replace(budget, workers=workers)
    jobs = [experiment.job(run.fold(number), split) for number, split in splits.items()]
    with FoldProgress({job.fold: job.folder.epochs for job in jobs}, experiment.epochs) as progress:
        if min(budget.workers, len(jobs)) > 1 and budget.ranks == 1:
            import_in_background(PUBLISH_MODULE)
        return train_folds(experiment.dataset, jobs, progress, budget)


def print_summary(summary: dict, path: Path) -> None:
    console = make_console()
    console.print(summary_table(summary, console.width))
    console.print(metrics_line(summary), highlight=False)
    if "targets" in summary:
        console.print(targets_table(summary))
    size = f"{summary['parameters']:,} parameters, {summary['seconds']:.1f} s, in"
    console.print(size, escape_control(path), soft_wrap=True)
