"""Entry point of the command line: one-line errors, exit codes, and the table at the end of a sweep."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeGuard

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from egin_dgl.cli import sweep
from egin_dgl.cli.error_messages import check_overrides, explain
from egin_dgl.cli.overrides import resume_arguments
from egin_dgl.errors import EginError, StorageError, TrainingError, escape_control, one_line
from egin_dgl.files import write_failure_reason
from egin_dgl.reproducibility import environment
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir
from egin_dgl.training.parallel.signals import Interrupted, handle_signals

log = logging.getLogger(__name__)

WANTS_TRACEBACK = os.environ.get("HYDRA_FULL_ERROR") == "1"


def run_app(main: Callable[[], object], config_dir: Path, config_name: str) -> None:
    """Call the function of a command: a known error is one line on stderr and exit code 1, a sweep ends in a table.

    HYDRA_FULL_ERROR=1 gives the traceback instead.
    """
    logging.raiseExceptions = WANTS_TRACEBACK  # no traceback per log line on a full disk
    failure = None
    try:
        # With the variable, Hydra raises an error instead of printing it in many lines.
        with environment({"HYDRA_FULL_ERROR": "1"}), handle_signals():
            check_overrides(sys.argv[1:], config_dir)
            main()
            sys.stdout.flush()
    except Exception as error:
        if WANTS_TRACEBACK or not (is_known(error) or sweep.active_sweep):
            raise
        failure = storage_failure(error) or explain(error, config_dir, config_name)
    except KeyboardInterrupt as interrupt:
        exit_interrupted(interrupt, sweep.active_dir)
    try:
        failure = finish_sweep() or failure
        sys.stdout.flush()
    except (OSError, StorageError) as error:
        failure = failure or storage_failure(error) or one_line(error)
        # The rest of the output cannot be written; Python would report it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if failure:
        sys.exit(f"error: {escape_control(failure)}")


def is_known(error: Exception) -> bool:
    known = (EginError, HydraException, OmegaConfBaseException)
    return isinstance(error, known) or storage_failure(error) is not None


def storage_failure(error: Exception) -> str | None:
    """Return the sentence about a file that we, Hydra or the terminal cannot write; None for another error."""
    hint = ""
    if is_started(sweep.active_dir):
        hint = f"; {resume_arguments(sweep.active_dir)} resumes once it can be written"
    if isinstance(error, StorageError):
        return f"{error}{hint}"
    if not isinstance(error, OSError) or not (reason := write_failure_reason(error)):
        return None
    where = error.filename or (f"in {sweep.active_dir}" if sweep.active_dir else "the output")
    return f"cannot write {where}: {reason}{hint}"


def is_started(directory: Path | None) -> TypeGuard[Path]:
    """Return whether there is a run or sweep to resume."""
    return directory is not None and (SweepDir(directory).exists or RunDir(directory).exists)


def finish_sweep() -> str | None:
    """Print the table of the sweep, if there is one; return a sentence about jobs that failed."""
    unfinished, jobs = sweep.publish_active_sweep()
    if not unfinished or sweep.active_dir is None:
        return None
    return f"{unfinished} of {jobs} jobs failed; {resume_arguments(sweep.active_dir)} runs them again"


@contextmanager
def exit_on_error(directory: Path | None = None) -> Iterator[None]:
    """End the process on a known error of a single run, in one line that says how to resume."""
    try:
        yield
    except (EginError, OmegaConfBaseException) as error:
        log.debug("traceback of the error", exc_info=True)
        if WANTS_TRACEBACK:
            raise error from None
        message = one_line(error)
        if isinstance(error, (TrainingError, StorageError)) and is_started(directory):
            when = "from here" if isinstance(error, TrainingError) else "once it can be written"
            message += f"; {resume_arguments(directory)} resumes {when}"
        sys.exit(f"error: {escape_control(message)}")


def exit_interrupted(interrupt: KeyboardInterrupt, directory: Path | None) -> NoReturn:
    """Print one line, and exit with the code of a program ended by a signal."""
    number = interrupt.number if isinstance(interrupt, Interrupted) else signal.SIGINT
    cause = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
    hint = f"; {resume_arguments(directory)} resumes from here" if is_started(directory) else ""
    print(f"\n{cause}{hint}", file=sys.stderr)
    sys.exit(128 + number)
