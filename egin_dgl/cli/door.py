"""The door of the command line: errors said in one line, and the end of a sweep."""

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from egin_dgl.cli import sweep
from egin_dgl.cli.explain import explain
from egin_dgl.cli.wellformed import check_words
from egin_dgl.cli.words import understood
from egin_dgl.errors import ConfigError, EginError, TrainingError, one_line
from egin_dgl.runs.run_folder import RunFolder
from egin_dgl.training.cores import Share, share

log = logging.getLogger(__name__)

WANTS_TRACEBACK = os.environ.get("HYDRA_FULL_ERROR") == "1"  # read before `enter` sets it


def enter(main: Callable[[], None], config_dir: Path, config_name: str) -> None:
    """Call a `@hydra.main` function: a known error is one line on stderr and exit code 1, a sweep ends in a table.

    HYDRA_FULL_ERROR=1 gives the traceback instead.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises what it would print in many lines
    failure = None
    try:
        sys.argv[1:] = understood(sys.argv[1:])
        check_words(sys.argv[1:], config_dir)
        main()
    except Exception as error:
        known = isinstance(error, (EginError, HydraException, OmegaConfBaseException))
        if WANTS_TRACEBACK or not (known or sweep.jobs()):
            raise
        failure = explain(error, config_dir, config_name)
    if sweep.current and sweep.jobs():
        from rich.console import Console  # here, as single runs need none of it

        from egin_dgl.reporting.many_runs.report import publish_sweep

        unfinished = publish_sweep(sweep.current.path, Console())
        if unfinished:
            failure = f"{len(unfinished)} of {len(sweep.jobs())} jobs did not end well; "
            failure += f"resume={os.path.relpath(sweep.current.path)} tries them again"
    if failure:
        sys.exit(f"error: {failure}")


def guarded(cfg: DictConfig, job: Callable[[Path, Share], dict]) -> float | None:
    """Run the job in Hydra's output folder with its share of the machine; return what a search maximizes.

    Its known errors end a single run here, and only themselves in a sweep.
    """
    hydra = HydraConfig.get()
    folder = Path(hydra.runtime.output_dir)
    in_sweep = hydra.mode == RunMode.MULTIRUN
    resumable = os.path.relpath(hydra.sweep.dir if in_sweep else folder)
    try:
        if in_sweep and "direction" in hydra.sweeper:
            from egin_dgl.cli.checked import checked  # here, as it needs torch and a misspelt word does not

            check_search(hydra.sweeper.direction, checked(cfg).cv.validation)
        with RunFolder(folder).alone():
            return job(folder, share(hydra.launcher, hydra.sweep.dir))["validation_score"]
    except (EginError, OmegaConfBaseException) as error:
        log.debug("what led to the error", exc_info=True)
        if in_sweep or WANTS_TRACEBACK:
            raise error from None
        if isinstance(error, TrainingError):
            error = TrainingError(f"{error}; resume={resumable} goes on from here")
        sys.exit(f"error: {one_line(error)}")
    except KeyboardInterrupt:
        print(f"\ninterrupted; resume={resumable} goes on from here", file=sys.stderr)
        sys.exit(130)


def check_search(direction: Any, validation: bool) -> None:
    if not validation:
        raise ConfigError("a search goes by the validation part, which this cv has not; use cv=ten_fold")
    if getattr(direction, "name", direction) != "maximize":
        raise ConfigError(f"a score is to be maximized: hydra.sweeper.direction=maximize, not {direction}")
