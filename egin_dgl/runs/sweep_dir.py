"""A sweep on disk: what was asked, its jobs, and which of them have ended.

sweep.json         the words of the command, and how many trials a search was to make
0_egin_mutag, …    the folders of its jobs, each a run's; one whose name begins with a dot was put aside
study.db           a search's study
table.md, …        what it came to
"""

from dataclasses import dataclass
from pathlib import Path
from types import NoneType

from egin_dgl.errors import ConfigError
from egin_dgl.files import storage_errors
from egin_dgl.runs.json_file import read_object, write_object
from egin_dgl.runs.run_dir import RunDir


@dataclass(frozen=True)
class SweepRequest:
    """What a sweep was asked for."""

    hydra: list[str]  # options of Hydra itself
    task: list[str]  # options of the app
    trials: int | None  # of a search


@dataclass(frozen=True)
class SweepDir:
    path: Path

    @property
    def record(self) -> Path:
        return self.path / "sweep.json"

    @property
    def is_there(self) -> bool:
        return self.record.is_file()

    def claim(self, asked: SweepRequest) -> None:
        """The folder is made; what was asked first stays."""
        with storage_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        if not self.record.exists():
            content = {"hydra": asked.hydra, "task": asked.task, "trials": asked.trials}
            write_object(self.record, content, sealed=True)

    def asked(self) -> SweepRequest:
        try:
            found = read_object(self.record, {"hydra": list, "task": list, "trials": (int, NoneType)})
            asked = SweepRequest(found["hydra"], found["task"], found["trials"])
            if not all(isinstance(word, str) for word in asked.hydra + asked.task):
                raise ConfigError(f"{self.record}: damaged (its options are not all texts)")
        except ConfigError as error:
            raise ConfigError(
                f"{error}; to go on, remove it and give the options of the sweep again, with hydra.sweep.dir={self.path}"
            ) from error
        return asked

    def jobs(self) -> list[RunDir]:
        """Those that have started."""
        return [RunDir(path.parent) for path in sorted(self.path.glob("[!.]*/.hydra"))]

    def put_aside_unfinished(self) -> int:
        """Rename jobs that were cut off; return how many have ended, well or not."""
        ended = 0
        for job in self.jobs():
            if job.summary.exists() or job.error.exists():
                ended += 1
            else:
                with storage_errors(job.path):
                    job.path.rename(job.path.with_name(f".cut_off_{job.path.name}"))
        return ended
