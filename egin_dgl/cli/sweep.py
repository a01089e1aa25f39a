"""A Hydra multirun: what Hydra calls while it goes on, and the words that go on with it."""

import logging
import re
from pathlib import Path

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from egin_dgl.errors import StorageError, one_line
from egin_dgl.files import write_text
from egin_dgl.runs.run_folder import RunFolder
from egin_dgl.runs.sweep_folder import Asked, SweepFolder

log = logging.getLogger(__name__)

REPLACED = ("hydra.mode=", "hydra.sweep.dir=", "hydra.sweep.subdir=", "hydra.sweeper.n_trials=")

current: SweepFolder | None = None  # the sweep that this process conducts
place: Path | None = None  # the folder of the run or sweep of this process


class Record(Callback):
    """Hydra calls these, the last where a job ran and the others before, where the run or sweep is conducted."""

    def on_run_start(self, config: DictConfig, **_) -> None:
        global place
        place = Path(config.hydra.run.dir)

    def on_multirun_start(self, config: DictConfig, **_) -> None:
        """Write down what was asked. The folder is there before a search opens its study in it."""
        global current, place
        current = SweepFolder(Path(config.hydra.sweep.dir))
        place = current.path
        trials = OmegaConf.select(config, "hydra.sweeper.n_trials")
        overrides = config.hydra.overrides
        current.claim(Asked(list(overrides.hydra), list(overrides.task), trials))

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **_) -> None:
        """Leave the reason of a failure in the job's folder, for the table at the end of the sweep."""
        note = RunFolder(Path(config.hydra.runtime.output_dir)).error
        if job_return.status != JobStatus.FAILED:
            note.unlink(missing_ok=True)
            return
        error = job_return._return_value  # the property would raise it
        log.debug("the job failed", exc_info=error)
        try:
            write_text(note, one_line(error) + "\n")
        except StorageError as full:
            log.warning("%s: %s", full, one_line(error))


def jobs() -> list[RunFolder]:
    """The jobs of the current sweep that have started."""
    return current.jobs() if current else []


def continued(folder: SweepFolder) -> list[str]:
    """The options that go on with a sweep: the same jobs in the same folders, or the trials still to do.

    A search draws new trials, so those that were cut off are put aside and the others numbered on.
    """
    asked = folder.asked()
    kept = [option for option in asked.hydra if not option.startswith(REPLACED)]
    options = ["--multirun", *kept, *asked.task, setting("hydra.sweep.dir", folder.path)]
    if asked.trials is None:
        return options
    tried = folder.put_aside_unfinished()
    names = "${hydra:job.num}_${hydra:runtime.choices.model}_${hydra:runtime.choices.dataset}"
    return [
        *options,
        f"hydra.sweeper.n_trials={max(0, asked.trials - tried)}",
        f"hydra.sweep.subdir='{tried}+{names}'",
    ]


def setting(key: str, path: Path) -> str:
    """An option with a path as its value, in quotes as Hydra's grammar has them: in these every character is itself."""
    text = re.sub(r"(\\*)('|\Z)", lambda end: 2 * end[1] + ("\\'" if end[2] else ""), str(path))
    return f"{key}='{text}'"
