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
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import yaml
from filelock import FileLock, Timeout

from egin_dgl import arithmetic
from egin_dgl.backend import installed_version
from egin_dgl.errors import ConfigError, TrainingError
from egin_dgl.files import atomic_path, move_aside, remove_temporary_files, storage_errors, write_text
from egin_dgl.runs.json_file import read_object, write_object
from egin_dgl.runs.settings import Settings, deciding, of_any_version

if TYPE_CHECKING:
    from egin_dgl.runs.fold_dir import FoldDir

log = logging.getLogger(__name__)

PACKAGES = ("torch", "dgl", "numpy", "hydra-core", "egin-dgl")
COMMAND_VARIABLE = (
    "EGIN_COMMAND"  # program and arguments as typed, a JSON list that jobs in other processes inherit
)
RECORD = {"model": str, "dataset": str, "settings": dict, "data_sha256": str}
SUMMARY = {"model": str, "dataset": str, "protocols": dict, "metrics": dict, "headline": str, "folds": int}


class Picture(Protocol):
    """A figure of matplotlib, which this room need not load."""

    def savefig(self, fname: Path, *, format: str, dpi: int) -> None: ...


@dataclass(frozen=True)
class RunDir:
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

    def fold(self, number: int) -> "FoldDir":
        from egin_dgl.runs.fold_dir import FoldDir  # here, as it needs torch and words of a run do not

        return FoldDir(self.path / f"fold_{number:02d}", number)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Two processes in one folder would overwrite each other's folds."""
        lock = FileLock(self.path / ".lock")
        try:
            with storage_errors(lock.lock_file):
                lock.acquire(timeout=0)
        except Timeout:
            raise ConfigError(f"another process is at work in {self.path}") from None
        try:
            # Of a process that was killed here: it is not at work any more.
            for folder in (self.path, *self.path.glob("fold_*"), *self.path.glob("fold_*/grid_*")):
                remove_temporary_files(folder)
            yield
        finally:
            lock.release()

    def started_with(self) -> list:
        """The options of the command that started the run here."""
        if not self.words.exists():
            raise ConfigError(
                f"{self.path} is not the folder of a run or a sweep: it has no .hydra/overrides.yaml"
            )
        if (words := texts_in(self.words)) is not None:
            return words
        # Hydra notes them a second time; an empty file would start another experiment here.
        words = texts_in(self.choices, "hydra", "overrides", "task")
        if words is None:
            raise ConfigError(
                f"{self.words}: damaged; to go on, give the options of the run again, with hydra.run.dir={self.path}"
            )
        log.warning("%s was damaged and is made again", self.words)
        move_aside(self.words)
        write_text(self.words, yaml.safe_dump(words))
        return words

    def own_configuration(self) -> str | None:
        """The folder that --config-dir named, if it did."""
        sources = content_of(self.choices, "hydra", "runtime", "config_sources")
        for source in sources if isinstance(sources, list) else ():
            if isinstance(source, dict) and source.get("provider") == "command-line":
                return str(source.get("path"))
        return None

    def finished(self, settings: Settings) -> dict | None:
        """The summary of the run with these settings, if it has ended here already."""
        if not self.summary.exists() or not self.record.exists():
            return None
        if deciding(of_any_version(self.read_record()["settings"])) != deciding(settings):
            return None
        try:
            summary = read_object(self.summary, SUMMARY)
        except ConfigError as error:
            log.warning("%s; it is put aside and made again", error)
            move_aside(self.summary)
            return None
        # Of a fold that somebody took away, to have it trained anew, there is more to do.
        return summary if len(list(self.path.glob("fold_*/last.pt"))) >= summary["folds"] else None

    def mend(self) -> None:
        """Of an ended run: write the history of a fold again where it is not its result's."""
        from egin_dgl.evaluation.result import FoldResult

        for path in sorted(self.path.glob("fold_*")):
            if path.name[5:].isdecimal():
                fold = self.fold(int(path.name[5:]))
                try:
                    result = fold.progress()
                except TrainingError as error:  # its numbers are in the summary all the same
                    log.warning("%s", error)
                    continue
                if isinstance(result, FoldResult):
                    fold.mend(result)

    def read_record(self) -> dict:
        try:
            return read_object(self.record, RECORD)
        except ConfigError as error:
            raise ConfigError(
                f"{error}; remove it to have it written again when the run is resumed"
            ) from error

    def claim(self, model: str, dataset: str, digest: str, settings: Settings) -> None:
        """Write down what this run is; a folder that holds another run is refused. `digest` is the data's hash."""
        if self.record.exists():
            self.check_same(digest, settings)
            return
        run = {"model": model, "dataset": dataset, "settings": settings, "data_sha256": digest}
        versions = {"python": platform.python_version()}
        versions |= {name: installed_version(name) for name in PACKAGES}
        run |= {"versions": versions, "arithmetic": arithmetic.described()}
        if command := os.environ.get(COMMAND_VARIABLE):
            run["command"] = json.loads(command)
        write_object(self.record, run)

    def check_same(self, digest: str, settings: Settings) -> None:
        before = self.read_record()
        past, now = deciding(of_any_version(before["settings"])), deciding(settings)
        differing = [key for key in now if past.get(key) != now[key]]
        if before["data_sha256"] != digest:
            differing.append("the data")
        if differing:
            raise ConfigError(
                f"{self.path} holds a run with other settings ({', '.join(differing)}); use a new folder"
            )
        here, there = arithmetic.described(), before.get("arithmetic")
        processors = [here["processor"], str(there["processor"]) if well_formed(there) else ""]
        promised = all(arithmetic.holds_on(settings["reproducible"], processor) for processor in processors)
        if not promised and there not in (None, here):
            log.warning(
                "this run began on %s and goes on on %s: its last digits may differ from an unbroken run's, which "
                "reproducible=any prevents",
                arithmetic.in_words(there) if well_formed(there) else "another machine",
                arithmetic.in_words(here),
            )

    def save_picture(self, name: str, picture: Picture) -> Path:
        path = self.path / f"{name}.png"
        with atomic_path(path) as temporary:
            picture.savefig(temporary, format="png", dpi=120)
        return path

    def end(self, summary: dict) -> None:
        """The last word: a run without it is gone on with."""
        write_object(self.summary, summary, sealed=True)


def texts_in(path: Path, *keys: str) -> list[str] | None:
    """The list of texts in a YAML file, or under these keys in it; None where there is no such list."""
    content = content_of(path, *keys)
    texts = isinstance(content, list) and all(isinstance(word, str) for word in content)
    return content if texts else None


def content_of(path: Path, *keys: str) -> Any:
    """What a YAML file holds under these keys; None where it is damaged or holds nothing there."""
    try:
        content = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return None
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def well_formed(arithmetic: object) -> TypeGuard[dict]:
    """Whether this is what `arithmetic.described` gave."""
    return isinstance(arithmetic, dict) and {"processor", "capability", "flags"} <= arithmetic.keys()
