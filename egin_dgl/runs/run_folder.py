"""A run on disk: whose folder it is, what it is made of, and whether it has ended.

run.json                  what the run is: model, dataset, settings, versions, processor; written before it trains
folds.json                which graph is in which part
fold_00, fold_01, …       its folds
predictions.csv           what each fold answers for its test graphs
curves.png, confusion.png
summary.json              what it came to; there once all else is
card.md                   all that on a page for people
error.txt                 of a job of a sweep that failed: why
.hydra/                   the words that started it, and what Hydra made of them
.lock                     held by the process that is at work
"""

import json
import logging
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from filelock import FileLock, Timeout
from omegaconf import OmegaConf

from egin_dgl import arithmetic
from egin_dgl.backend import installed_version
from egin_dgl.errors import ConfigError
from egin_dgl.files import atomic_path, write_text
from egin_dgl.runs.settings import Settings, of_any_version

if TYPE_CHECKING:
    from egin_dgl.runs.fold_folder import FoldFolder

log = logging.getLogger(__name__)

PACKAGES = ("torch", "dgl", "numpy", "hydra-core", "egin-dgl")


class Picture(Protocol):
    """A figure of matplotlib, which this room need not load."""

    def savefig(self, fname: Path, *, format: str, dpi: int) -> None: ...


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @property
    def record(self) -> Path:
        return self.path / "run.json"

    @property
    def folds(self) -> Path:
        return self.path / "folds.json"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def predictions(self) -> Path:
        return self.path / "predictions.csv"

    @property
    def card(self) -> Path:
        return self.path / "card.md"

    @property
    def error(self) -> Path:
        return self.path / "error.txt"

    @property
    def words(self) -> Path:
        """The options of the command that started it."""
        return self.path / ".hydra" / "overrides.yaml"

    @property
    def choices(self) -> Path:
        """What Hydra chose for each group."""
        return self.path / ".hydra" / "hydra.yaml"

    @property
    def config(self) -> Path:
        return self.path / ".hydra" / "config.yaml"

    @property
    def holds_a_run(self) -> bool:
        return self.record.is_file() or self.words.is_file()

    def fold(self, number: int) -> "FoldFolder":
        from egin_dgl.runs.fold_folder import FoldFolder  # here, as it needs torch and words of a run do not

        return FoldFolder(self.path / f"fold_{number:02d}", number)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Two processes in one folder would overwrite each other's folds."""
        try:
            with FileLock(self.path / ".lock", timeout=0):
                yield
        except Timeout:
            raise ConfigError(f"another process is at work in {self.path}") from None

    def started_with(self) -> list[str]:
        """The options of the command that started the run here."""
        if not self.words.is_file():
            raise ConfigError(
                f"{self.path} is not the folder of a run or a sweep: it has no .hydra/overrides.yaml"
            )
        return list(OmegaConf.load(self.words))

    def own_configuration(self) -> str | None:
        """The folder that --config-dir named, if it did."""
        if not self.choices.is_file():
            return None
        sources = OmegaConf.select(OmegaConf.load(self.choices), "hydra.runtime.config_sources") or ()
        return next((source.path for source in sources if source.provider == "command-line"), None)

    def finished(self, settings: Settings) -> dict | None:
        """The summary of the run with these settings, if it has ended here already."""
        if not self.summary.exists():
            return None
        run, summary = (json.loads(path.read_text("utf-8")) for path in (self.record, self.summary))
        return summary if of_any_version(run["settings"]) == settings else None

    def claim(self, model: str, dataset: str, digest: str, settings: Settings) -> None:
        """Write down what this run is; a folder that holds another run is refused. `digest` is the data's hash."""
        if self.record.exists():
            self.check_same(digest, settings)
            return
        run = {"model": model, "dataset": dataset, "settings": settings, "data_sha256": digest}
        versions = {"python": platform.python_version()}
        versions |= {name: installed_version(name) for name in PACKAGES}
        run |= {"versions": versions, "arithmetic": arithmetic.described()}
        write_text(self.record, json.dumps(run, indent=1) + "\n")

    def check_same(self, digest: str, settings: Settings) -> None:
        before = json.loads(self.record.read_text(encoding="utf-8"))
        past = of_any_version(before["settings"])
        differing = [key for key in settings if past.get(key) != settings[key]]
        if before["data_sha256"] != digest:
            differing.append("the data")
        if differing:
            raise ConfigError(
                f"{self.path} holds a run with other settings ({', '.join(differing)}); use a new folder"
            )
        here = arithmetic.described()
        if not settings["reproducible"] and before.get("arithmetic", here) != here:
            log.warning(
                "this run began on %s and goes on on %s: its last digits may differ from an unbroken run's, which "
                "reproducible=any prevents",
                arithmetic.in_words(before["arithmetic"]),
                arithmetic.in_words(here),
            )

    def save_picture(self, name: str, picture: Picture) -> None:
        with atomic_path(self.path / f"{name}.png") as temporary:
            picture.savefig(temporary, format="png", dpi=120)

    def end(self, summary: dict) -> None:
        """The last word: a run without it is gone on with."""
        write_text(self.summary, json.dumps(summary, indent=1) + "\n")
