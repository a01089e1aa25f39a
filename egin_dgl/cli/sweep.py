"""A Hydra multirun: what Hydra calls while it goes on, and the words that go on with it."""

import logging
import math
import re
import sys
from pathlib import Path
from secrets import token_hex

from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from egin_dgl.errors import StorageError, one_line
from egin_dgl.files import write_text
from egin_dgl.named import meant, sayable
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir, SweepRequest

log = logging.getLogger(__name__)

current: SweepDir | None = None  # the sweep that this process conducts
place: Path | None = None  # the folder of the run or sweep of this process


class Record(Callback):
    """Hydra calls these, the last where a job ran and the others before, where the run or sweep is conducted."""

    def on_run_start(self, config: DictConfig, **_) -> None:
        global place
        HydraConfig.instance().set_config(config)  # the folder's name asks it what was chosen
        place = meant(config.hydra.run.dir)

    def on_multirun_start(self, config: DictConfig, **_) -> None:
        """Write down what was asked. The folder is there before a search opens its study in it."""
        global current, place
        current = SweepDir(meant(config.hydra.sweep.dir))
        place = current.path
        trials = OmegaConf.select(config, "hydra.sweeper.n_trials")
        overrides = config.hydra.overrides
        try:
            current.claim(SweepRequest(list(overrides.hydra), list(overrides.task), trials))
        except StorageError as error:  # Hydra would go on, and only warn
            sys.exit(f"error: {error}")

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **_) -> None:
        """Leave the reason of a failure in the job's folder, for the table at the end of the sweep."""
        note = RunDir(meant(config.hydra.runtime.output_dir)).error
        if job_return.status != JobStatus.FAILED:
            note.unlink(missing_ok=True)
            return
        error = job_return._return_value  # the property would raise it
        log.debug("the job failed", exc_info=error)
        try:
            write_text(note, one_line(error) + "\n")
        except StorageError as full:
            log.warning("%s: %s", full, one_line(error))


def notes_of_launcher(words: list[str]) -> list[str]:
    """Submitit reads pickles from its folder, so it gets one whose name nobody could know beforehand."""
    if not any(word.startswith("hydra/launcher=submitit") for word in words):
        return []
    return [f"hydra.launcher.submitit_folder='${{hydra.sweep.dir}}/.submitit/{token_hex(8)}/%j'"]


def jobs() -> list[RunDir]:
    """The jobs of the current sweep that have started."""
    return current.jobs() if current else []


def how_many(hydra: HydraConf) -> int | None:
    """The jobs of the sweep that a job is of: the trials of a search, or the points of a grid; None where nothing says."""
    folder = SweepDir(meant(hydra.sweep.dir))
    if "n_trials" in hydra.sweeper:
        return hydra.sweeper.n_trials
    if not folder.is_there:
        return None
    words = OverridesParser.create().parse_overrides(folder.asked().task)
    return math.prod(len(list(word.sweep_string_iterator())) for word in words if word.is_discrete_sweep())


def continued(folder: SweepDir, trust: bool = False) -> list[str]:
    """The options that go on with a sweep: the same jobs in the same folders, or the trials still to do.

    A search draws new trials, so those that were cut off are put aside and the others numbered on.
    """
    from egin_dgl.cli.replayed import replayed  # here, as it loads torch

    asked = folder.asked()
    kept = replayed([*asked.hydra, *asked.task], folder.path, trust)
    options = [
        "--multirun",
        *kept,
        *notes_of_launcher(kept),
        setting("hydra.sweep.dir", sayable(folder.path)),
    ]
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
