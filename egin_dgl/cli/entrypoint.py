"""Around every command: one-line errors that say how to resume, exit codes, and the table at the end of a sweep."""

import logging
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeGuard

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from egin_dgl.cli.error_messages import explain
from egin_dgl.cli.overrides import resume_arguments
from egin_dgl.errors import EginError, StorageError, TrainingError, escape_control
from egin_dgl.files import write_failure_reason
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir
from egin_dgl.training.parallel.signals import Interrupted, handle_signals

WANTS_TRACEBACK = os.environ.get("HYDRA_FULL_ERROR") == "1"

active_dir: Path | None = None  # directory of the run or sweep of this process


def activate(directory: Path | None) -> None:
    """Set the directory that messages about errors and interruptions refer to, and whose table a sweep ends in."""
    global active_dir
    active_dir = directory


def run_app(main: Callable[[], object]) -> None:
    """Call the function of a command: a known error is one line on stderr and exit code 1, a sweep ends in a table.

    HYDRA_FULL_ERROR=1 gives the traceback instead.
    """
    logging.raiseExceptions = WANTS_TRACEBACK  # no traceback per log line on a full disk
    failure = None
    try:
        with handle_signals():
            main()
            sys.stdout.flush()
    except Exception as error:
        exit_if_unread(error, active_dir)
        in_sweep = active_dir is not None and SweepDir(active_dir).exists
        if WANTS_TRACEBACK or not (is_known(error) or in_sweep):
            raise
        failure = describe_failure(error)
    except KeyboardInterrupt as interrupt:
        exit_interrupted(interrupt, active_dir)
    try:
        failure = finish_sweep() or failure
        sys.stdout.flush()
    except (OSError, StorageError) as error:
        exit_if_unread(error, active_dir)
        failure = failure or describe_failure(error)
        discard_output()
    if failure:
        sys.exit(f"error: {failure}")


@contextmanager
def exit_on_error() -> Iterator[None]:
    """End the process on an error that Hydra would print in many lines, or as a warning about a callback."""
    try:
        yield
    except Exception as error:
        exit_if_unread(error, active_dir)
        if WANTS_TRACEBACK or not is_known(error):
            traceback.print_exc()
        sys.exit(f"error: {describe_failure(error)}")


def is_known(error: Exception) -> bool:
    known = isinstance(error, (EginError, HydraException, OmegaConfBaseException))
    return known or (isinstance(error, OSError) and write_failure_reason(error) is not None)


def describe_failure(error: Exception) -> str:
    """The sentence about an error, with the arguments that resume where they help."""
    text, when = explain(error), "from here" if isinstance(error, TrainingError) else None
    if isinstance(error, StorageError):
        when = "once it can be written"
    elif isinstance(error, OSError) and (reason := write_failure_reason(error)):  # of Hydra or the terminal
        where = error.filename or (f"in {active_dir}" if active_dir else "the output")
        text, when = f"cannot write {where}: {reason}", "once it can be written"
    if when and is_started(active_dir):
        text += f"; {resume_arguments(active_dir)} resumes {when}"
    return escape_control(text)


def is_started(directory: Path | None) -> TypeGuard[Path]:
    return directory is not None and (SweepDir(directory).exists or RunDir(directory).exists)


def finish_sweep() -> str | None:
    """Print and write the table of the sweep of this process, if any; return a sentence about jobs that failed."""
    if active_dir is None or not SweepDir(active_dir).exists:
        return None
    if not (jobs := len(SweepDir(active_dir).runs())):
        return None
    from rich.console import Console  # single runs need none of it

    from egin_dgl.reporting.many_runs.report import publish_sweep

    unfinished = len(publish_sweep(active_dir, Console(emoji=False)))
    hint = escape_control(resume_arguments(active_dir))
    return f"{unfinished} of {jobs} jobs failed; {hint} runs them again" if unfinished else None


def exit_if_unread(error: Exception, directory: Path | None) -> None:
    """End where nobody reads the output any more, as in `egin table | head`: without a word, unless a run can be resumed."""
    if isinstance(error, BrokenPipeError) and is_unread(sys.stdout.fileno()):
        discard_output()
        if is_started(directory):
            print(
                f"nobody reads the output; {resume_arguments(directory)} resumes from here", file=sys.stderr
            )
        sys.exit(128 + signal.SIGPIPE)


def is_unread(descriptor: int) -> bool:
    """Whether the other end of a pipe is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are always reported
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def discard_output() -> None:
    """The rest of the output cannot be written; Python would report it once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_interrupted(interrupt: KeyboardInterrupt, directory: Path | None) -> NoReturn:
    """Print one line, and exit with the code of a program ended by a signal."""
    number = interrupt.number if isinstance(interrupt, Interrupted) else signal.SIGINT
    cause = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
    hint = f"; {resume_arguments(directory)} resumes from here" if is_started(directory) else ""
    print(f"\n{cause}{hint}", file=sys.stderr)
    sys.exit(128 + number)
