"""A Hydra multirun: what Hydra calls while it goes on, and the words that go on with it."""

import logging
import math
from pathlib import Path

from hydra.conf import HydraConf
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from egin_dgl.errors import one_line
from egin_dgl.files import write_text
from egin_dgl.runs.run_folder import RunFolder
from egin_dgl.runs.sweep_folder import Asked, SweepFolder

log = logging.getLogger(__name__)

REPLACED = ("hydra.mode=", "hydra.sweep.dir=", "hydra.sweep.subdir=", "hydra.sweeper.n_trials=")

current: SweepFolder | None = None  # the sweep that this process conducts


class Record(Callback):
    """Hydra calls these, the first where the sweep is conducted and the second where a job ran."""

    def on_multirun_start(self, config: DictConfig, **_) -> None:
        """Write down what was asked. The folder is there before a search opens its study in it."""
        global current
        current = SweepFolder(Path(config.hydra.sweep.dir))
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
        write_text(note, one_line(error) + "\n")


def jobs() -> list[RunFolder]:
    """The jobs of the current sweep that have started."""
    return current.jobs() if current else []


def how_many(hydra: HydraConf) -> int | None:
    """The jobs of the sweep that a job is of: the trials of a search, or the points of a grid; None where nothing says."""
    folder = SweepFolder(Path(hydra.sweep.dir))
    if "n_trials" in hydra.sweeper:
        return hydra.sweeper.n_trials
    if not folder.is_there:
        return None
    words = OverridesParser.create().parse_overrides(folder.asked().task)
    return math.prod(len(list(word.sweep_string_iterator())) for word in words if word.is_discrete_sweep())


def continued(folder: SweepFolder) -> list[str]:
    """The options that go on with a sweep: the same jobs in the same folders, or the trials still to do.

    A search draws new trials, so those that were cut off are put aside and the others numbered on.
    """
    asked = folder.asked()
    kept = [option for option in asked.hydra if not option.startswith(REPLACED)]
    options = ["--multirun", *kept, *asked.task, f"hydra.sweep.dir={folder.path}"]
    if asked.trials is None:
        return options
    tried = folder.put_aside_unfinished()
    names = "${hydra:job.num}_${hydra:runtime.choices.model}_${hydra:runtime.choices.dataset}"
    return [
        *options,
        f"hydra.sweeper.n_trials={max(0, asked.trials - tried)}",
        f"hydra.sweep.subdir='{tried}+{names}'",
    ]
