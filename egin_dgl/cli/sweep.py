"""A Hydra multirun as a folder: what was asked, which jobs failed and why, and how it is continued."""

import json
import logging
from pathlib import Path

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from egin_dgl.errors import one_line
from egin_dgl.files import write_text

log = logging.getLogger(__name__)

FILE = "sweep.json"
REPLACED = ("hydra.mode=", "hydra.sweep.dir=", "hydra.sweep.subdir=", "hydra.sweeper.n_trials=")

current: Path | None = None  # the folder of the sweep that this process conducts


class Record(Callback):
    """Hydra calls these, the first where the sweep is conducted and the second where a job ran."""

    def on_multirun_start(self, config: DictConfig, **_) -> None:
        """Write down what was asked. The folder is there before a search opens its study in it."""
        global current
        current = Path(config.hydra.sweep.dir)
        current.mkdir(parents=True, exist_ok=True)
        if not (current / FILE).exists():
            overrides = OmegaConf.to_container(config.hydra.overrides)
            asked = overrides | {"trials": OmegaConf.select(config, "hydra.sweeper.n_trials")}
            write_text(current / FILE, json.dumps(asked, indent=1) + "\n")

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **_) -> None:
        """Leave the reason of a failure in the job's folder, for the table at the end of the sweep."""
        path = Path(config.hydra.runtime.output_dir) / "error.txt"
        if job_return.status != JobStatus.FAILED:
            path.unlink(missing_ok=True)
            return
        error = job_return._return_value  # the property would raise it
        log.debug("the job failed", exc_info=error)
        write_text(path, one_line(error) + "\n")


def jobs() -> list[Path]:
    """The folders of the jobs of the current sweep that have started."""
    return started(current) if current else []


def started(folder: Path) -> list[Path]:
    """Job folders below a sweep's; a hidden one was put aside."""
    return sorted(path.parent for path in folder.glob("[!.]*/.hydra"))


def is_sweep(folder: Path) -> bool:
    return (folder / FILE).is_file()


def continued(folder: Path) -> list[str]:
    """The options that go on with the sweep in `folder`: the same jobs in the same folders, or the trials still to do.

    A search draws new trials, so those that were cut off are put aside and the others numbered on.
    """
    asked = json.loads((folder / FILE).read_text(encoding="utf-8"))
    kept = [option for option in asked["hydra"] if not option.startswith(REPLACED)]
    options = ["--multirun", *kept, *asked["task"], f"hydra.sweep.dir={folder}"]
    if asked["trials"] is None:
        return options
    tried = 0
    for job in started(folder):
        if (job / "summary.json").exists() or (job / "error.txt").exists():
            tried += 1
        else:
            job.rename(job.with_name(f".cut_off_{job.name}"))
    names = "${hydra:job.num}_${hydra:runtime.choices.model}_${hydra:runtime.choices.dataset}"
    return [
        *options,
        f"hydra.sweeper.n_trials={max(0, asked['trials'] - tried)}",
        f"hydra.sweep.subdir='{tried}+{names}'",
    ]
