"""The door of the command line: errors said in one line, and the end of a sweep."""

import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from egin_dgl.cli import sweep
from egin_dgl.cli.error_messages import check_overrides as check_words
from egin_dgl.cli.error_messages import explain
from egin_dgl.cli.overrides import resuming, understood
from egin_dgl.errors import ConfigError, EginError, StorageError, TrainingError, one_line
from egin_dgl.files import write_failure_reason
from egin_dgl.named import meant
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir
from egin_dgl.training.parallel.resources import CpuBudget, cpu_budget
from egin_dgl.training.parallel.signals import Interrupted, handle_signals

log = logging.getLogger(__name__)

WANTS_TRACEBACK = os.environ.get("HYDRA_FULL_ERROR") == "1"  # read before `run_app` sets it


def run_app(main: Callable[[], None], config_dir: Path, config_name: str) -> None:
    """Call a `@hydra.main` function: a known error is one line on stderr and exit code 1, a sweep ends in a table.

    HYDRA_FULL_ERROR=1 gives the traceback instead.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises what it would print in many lines
    logging.raiseExceptions = WANTS_TRACEBACK  # a log on a full disk is not worth a traceback for every line
    failure = None
    try:
        with handle_signals():
            sys.argv[1:] = understood(sys.argv[1:])
            check_words(sys.argv[1:], config_dir)
            main()
            sys.stdout.flush()
    except Exception as error:
        if WANTS_TRACEBACK or not (is_known(error) or sweep.jobs()):
            raise
        failure = storage_failure(error) or explain(error, config_dir, config_name)
    except KeyboardInterrupt as asked:
        end_interrupted(asked, sweep.place)
    try:
        failure = end_of_sweep() or failure
        sys.stdout.flush()
    except (OSError, StorageError) as error:
        failure = failure or storage_failure(error) or one_line(error)
        # What is left of the output cannot be written; Python would say so once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if failure:
        sys.exit(f"error: {failure}")


def is_known(error: Exception) -> bool:
    return isinstance(error, (EginError, HydraException, OmegaConfBaseException)) or bool(
        storage_failure(error)
    )


def storage_failure(error: Exception) -> str | None:
    """What a disk that is full, or not ours, keeps from being written: by us, by Hydra, or on the terminal."""
    if isinstance(error, StorageError):
        return f"{error}{how_to_go_on()}"
    if not isinstance(error, OSError) or not (reason := write_failure_reason(error)):
        return None
    where = error.filename or (f"in {sweep.place}" if sweep.place else "the output")
    return f"cannot write {where}: {reason}{how_to_go_on()}"


def how_to_go_on() -> str:
    return f"; {resuming(sweep.place)} goes on once it can be written" if begun(sweep.place) else ""


def begun(folder: Path | None) -> TypeGuard[Path]:
    """Whether there is a run or sweep to go on with."""
    return folder is not None and (SweepDir(folder).is_there or RunDir(folder).holds_a_run)


def end_of_sweep() -> str | None:
    """The table of a sweep; what its jobs that did not end well are told by."""
    if not (sweep.current and sweep.jobs()):
        return None
    from rich.console import Console  # here, as single runs need none of it

    from egin_dgl.reporting.many_runs.report import publish_sweep

    unfinished = publish_sweep(sweep.current.path, Console())
    if not unfinished:
        return None
    return (
        f"{len(unfinished)} of {len(sweep.jobs())} jobs did not end well; "
        f"{resuming(sweep.current.path)} tries them again"
    )


def run_job(cfg: DictConfig, job: Callable[[Path, CpuBudget], dict]) -> float | None:
    """Run the job in Hydra's output folder with its share of the machine; return what a search maximizes.

    Its known errors end a single run here, and only themselves in a sweep.
    """
    hydra = HydraConfig.get()
    folder = meant(hydra.runtime.output_dir)
    in_sweep = hydra.mode == RunMode.MULTIRUN
    resumable = meant(hydra.sweep.dir) if in_sweep else folder
    try:
        if in_sweep and "direction" in hydra.sweeper:
            from egin_dgl.cli.validation import (
                validate_config as checked,
            )  # here, as it loads torch, which help does without

            check_search(hydra.sweeper.direction, checked(cfg).cv.validation)
        if in_sweep and (jobs := sweep.how_many(hydra)):
            print(f"job {hydra.job.num + 1} of {jobs}", file=sys.stderr)
        with handle_signals(), RunDir(folder).alone():
            return job(folder, cpu_budget(hydra.launcher, hydra.sweep.dir))["validation_score"]
    except (EginError, OmegaConfBaseException) as error:
        log.debug("what led to the error", exc_info=True)
        if in_sweep or WANTS_TRACEBACK:
            raise error from None
        if isinstance(error, TrainingError):
            error = TrainingError(f"{error}; {resuming(resumable)} goes on from here")
        if isinstance(error, StorageError):
            error = StorageError(f"{error}; {resuming(resumable)} goes on once it can be written")
        sys.exit(f"error: {one_line(error)}")
    except KeyboardInterrupt as asked:
        end_interrupted(asked, resumable)


def end_interrupted(asked: KeyboardInterrupt, folder: Path | None) -> NoReturn:
    """One line, and the code that a shell gives to a program that a signal ended."""
    number = asked.number if isinstance(asked, Interrupted) else signal.SIGINT
    word = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
    goes_on = f"; {resuming(folder)} goes on from here" if begun(folder) else ""
    print(f"\n{word}{goes_on}", file=sys.stderr)
    sys.exit(128 + number)


def check_search(direction: Any, validation: bool) -> None:
    if not validation:
        raise ConfigError("a search goes by the validation part, which this cv has not; use cv=ten_fold")
    if getattr(direction, "name", direction) != "maximize":
        raise ConfigError(f"a score is to be maximized: hydra.sweeper.direction=maximize, not {direction}")
