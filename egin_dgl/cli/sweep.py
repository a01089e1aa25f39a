"""Hydra callback that records a sweep before its first job, and the table at its end."""

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from egin_dgl.cli.config_dirs import conf_dir
from egin_dgl.cli.error_messages import explain
from egin_dgl.errors import ConfigError, EginError, StorageError, escape_control, one_line
from egin_dgl.files import write_text
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir, SweepRecord

log = logging.getLogger(__name__)

active_dir: Path | None = None  # directory of the run or sweep of this process
active_sweep: SweepDir | None = None  # the sweep that this process runs


def activate(directory: Path, is_sweep: bool = False) -> None:
    """Set the directory that messages about errors and interruptions refer to."""
    global active_dir, active_sweep
    active_dir, active_sweep = directory, SweepDir(directory) if is_sweep else None


class Record(Callback):
    """Called by Hydra in the process that starts a run or sweep."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        run = RunDir(Path(config.hydra.run.dir))
        if run.exists:
            with exit_on_exception():
                check_existing(run, config)
        activate(run.path)

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        with exit_on_exception():
            record_sweep(config)


@contextmanager
def exit_on_exception() -> Iterator[None]:
    """End the process where Hydra would print a warning about its callback and continue."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, (EginError, HydraException, OmegaConfBaseException)):
            traceback.print_exc()
        sys.exit(f"error: {escape_control(explain(error, conf_dir(), 'train'))}")


def check_existing(run: RunDir, config: DictConfig) -> None:
    """Refuse a directory with another run before Hydra writes to it."""
    from egin_dgl.cli.run_specs import resolve_settings  # imports torch

    app = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    with run.lock():
        run.check_settings(resolve_settings(app))


def record_sweep(config: DictConfig) -> None:
    """Write sweep.json: all jobs of a grid, or the number of trials of a search, before a study is opened there."""
    sweep = SweepDir(Path(config.hydra.sweep.dir))
    trials = OmegaConf.select(config, "hydra.sweeper.n_trials")
    if trials is None:
        from egin_dgl.cli.run_specs import expand_sweep  # imports torch

        sweep.register(SweepRecord(expand_sweep(config)))
    else:
        check_search(config)
        continued = sweep.exists
        sweep.register(SweepRecord([], trials))
        if continued:
            sweep.move_unfinished_aside()
    activate(sweep.path, is_sweep=True)


def check_search(config: DictConfig) -> None:
    direction = config.hydra.sweeper.direction
    if not OmegaConf.select(config, "cv.validation"):
        raise ConfigError(
            "a search maximizes the validation score, and this cv has no validation set; use cv=ten_fold"
        )
    if getattr(direction, "name", direction) != "maximize":
        raise ConfigError(f"a score is maximized: use hydra.sweeper.direction=maximize, not {direction}")


def record_failure(run: RunDir, error: BaseException) -> None:
    """Write error.txt, which the table at the end of the sweep shows."""
    log.debug("the job failed", exc_info=error)
    try:
        write_text(run.error, one_line(error) + "\n")
    except StorageError as full:
        log.warning("%s: %s", full, one_line(error))


def publish_active_sweep() -> tuple[int, int]:
    """Print and write the table of the sweep of this process; return how many jobs are unfinished, and of how many."""
    if active_sweep is None or not active_sweep.runs():
        return 0, 0
    from rich.console import Console  # single runs need none of it

    from egin_dgl.reporting.many_runs.report import publish_sweep

    unfinished = publish_sweep(active_sweep.path, Console())
    return len(unfinished), len(active_sweep.runs())
