"""One run in one process: a command composed by Hydra, a job of a sweep, or a recorded run that is resumed."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from egin_dgl import reproducibility
from egin_dgl.cli.entrypoint import exit_interrupted, exit_on_error
from egin_dgl.cli.sweep import record_failure
from egin_dgl.errors import StorageError
from egin_dgl.imports import gc_disabled
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import RunSpec
from egin_dgl.runs.sweep_dir import SweepDir
from egin_dgl.training.parallel.processes import start_forkserver
from egin_dgl.training.parallel.resources import CpuBudget, cores, cpu_budget
from egin_dgl.training.parallel.signals import handle_signals

FORMAT = "[%(asctime)s][%(name)s][%(levelname)s] - %(message)s"  # as Hydra's default


def run_composed(cfg: DictConfig) -> float | None:
    """Run what Hydra composed, in Hydra's output directory; return the score that a search maximizes."""
    hydra = HydraConfig.get()
    run = RunDir(Path(hydra.runtime.output_dir))
    budget = cpu_budget(hydra.launcher, hydra.sweep.dir)
    prepare_workers(cfg, budget)
    with gc_disabled(), exit_on_error():  # DGL may fail to import
        from egin_dgl.cli.app import train
        from egin_dgl.cli.run_specs import make_spec

    def job() -> dict:
        return train(make_spec(cfg, hydra), run.path, budget)

    if hydra.mode != RunMode.MULTIRUN:
        return run_alone(run, job)["validation_score"]
    sweep = SweepDir(Path(hydra.sweep.dir))
    return run_in_sweep(sweep, run, hydra.job.num, len(sweep.load()), job)["validation_score"]


def run_alone(run: RunDir, job: Callable[[], dict]) -> dict:
    """Run it as the only run of this process, which ends with an error of the run."""
    try:
        with exit_on_error(run.path), handle_signals(), run.lock():
            return job()
    except KeyboardInterrupt as interrupt:
        exit_interrupted(interrupt, run.path)


def run_in_sweep(sweep: SweepDir, run: RunDir, number: int, jobs: int, job: Callable[[], dict]) -> dict:
    """Run it as one job of many: an error is written to its directory, and raised."""
    print(f"job {number + 1} of {jobs}", file=sys.stderr)
    try:
        with handle_signals(), run.lock():
            summary = job()
    except KeyboardInterrupt as interrupt:
        exit_interrupted(interrupt, sweep.path)
    except Exception as error:
        record_failure(run, error)
        raise
    run.error.unlink(missing_ok=True)
    return summary


def run_recorded(spec: RunSpec, run: RunDir, budget: CpuBudget | None = None, trust: bool = False) -> dict:
    """Run validated settings, without Hydra."""
    budget = budget or CpuBudget(len(cores()))
    prepare_workers(spec.settings, budget)
    with gc_disabled(), exit_on_error():  # DGL may fail to import
        from egin_dgl.cli.app import train

    return train(spec, run.path, budget, trust)


def prepare_workers(settings: Any, budget: CpuBudget) -> None:
    """Start the forkserver, if folds will be trained in parallel: it imports torch and DGL while this process does."""
    one_fold = isinstance(settings.get("cv", {}).get("fold"), int)
    workers = settings.get("trainer", {}).get("fold_workers") or budget.workers
    if not one_fold and workers != 1 and reproducibility.is_active(settings.get("reproducible", False)):
        start_forkserver()


@contextmanager
def log_to(run: RunDir) -> Iterator[None]:
    """Log to the terminal and to train.log, as Hydra does."""
    root = logging.getLogger()
    before, level = root.handlers, root.level
    try:
        file = logging.FileHandler(run.log_file, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {run.log_file}: {error.strerror}") from error
    root.handlers = [logging.StreamHandler(sys.stdout), file]
    for handler in root.handlers:
        handler.setFormatter(logging.Formatter(FORMAT))
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers = before
        root.setLevel(level)
        file.close()
