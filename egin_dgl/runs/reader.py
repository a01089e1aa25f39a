"""Run folders, found and read back: what each run is, which of its folds are finished, and why others are not.

Nothing that cannot be read stops the reading: it is kept as a sentence beside the run, and its fold counts as missing.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from egin_dgl.data.splits import fold_numbers
from egin_dgl.errors import ConfigError, DataError, EginError
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.json_file import read_object
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import Settings, of_any_version, settings_in, without_functions


@dataclass(frozen=True, repr=False)
class Run:
    """One run folder. A job that ended before it wrote run.json has only what Hydra noted of it.

    `settings` is empty where not even these can be read; such a run can be listed, but has no place in a table.
    """

    folder: Path
    model: str  # as in tables; the name of its option until the model was once built
    dataset: str
    settings: Settings = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)  # the option chosen of each group
    overrides: tuple[str, ...] = ()
    k: int = 0
    repeats: int = 1
    fixed: bool = False  # the data name one split, which is fold 0
    folds_hash: str | None = None  # None: no folds were made yet
    data_hash: str | None = None  # None: the data was not read yet
    results: dict[int, FoldResult] = field(default_factory=dict)  # of finished folds, by number
    error: str | None = None
    problems: tuple[str, ...] = ()  # files that could not be read

    def __repr__(self) -> str:
        state = "complete" if self.complete else self.reason
        return f"Run({self.model} on {self.dataset}, {len(self.results)} folds, {state}, in {self.folder})"

    @property
    def seed(self) -> int:
        return self.settings["seed"]

    @property
    def whole(self) -> int:
        """How many folds there are; a holdout has one, its split."""
        one = self.fixed or self.settings.get("cv", {}).get("holdout")
        return 1 if one else self.k * self.repeats

    @property
    def expected(self) -> list[int]:
        """The folds it was asked for."""
        fold = self.settings.get("cv", {}).get("fold")
        return list(range(self.whole)) if fold is None else fold_numbers(fold)

    @property
    def missing(self) -> list[int]:
        return [fold for fold in self.expected if fold not in self.results]

    @property
    def complete(self) -> bool:
        return bool(self.settings) and not (self.missing or self.error)

    @property
    def name(self) -> str:
        return " ".join([self.folder.name, *self.overrides])

    @property
    def reason(self) -> str:
        """Why it is not complete, in words."""
        if self.error:
            return self.error
        if self.problems:
            return "; ".join(self.problems)
        if not self.results:
            return "no fold is finished"
        return f"{len(self.results)} of {len(self.expected)} folds are finished"

    def finished_at(self, fold: int) -> float:
        """When a finished fold was written, in seconds."""
        return RunDir(self.folder).fold(fold).checkpoint.stat().st_mtime


def find_runs(folders: Sequence[str | Path]) -> list[Run]:
    """All runs in and below the folders, in the order of the folders and of the numbers in their names."""
    found: dict[Path, Run] = {}
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise ConfigError(f"{folder}: no such folder")
        for place in run_folders(folder):
            if place.resolve() not in found:
                found[place.resolve()] = read_run(place)
    if not found:
        raise DataError(f"no run in or below {', '.join(map(str, folders))}: no folder there has a run.json")
    return list(found.values())


def run_folders(folder: Path) -> Iterator[Path]:
    if RunDir(folder).holds_a_run:
        yield folder
        return
    inner = [Path(entry) for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith(".")]
    for path in sorted(inner, key=lambda path: natural(path.name)):
        yield from run_folders(path)


def natural(name: str) -> list[str | int]:
    """A key by which 9_gin comes before 10_gin."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def read_run(path: Path) -> Run:
    folder, problems = RunDir(path), list[str]()
    hydra = read_yaml(folder.choices, dict, problems)
    options = mapping_in(hydra, "hydra", "runtime", "choices")
    words = [str(word) for word in read_yaml(folder.words, list, problems)]
    record = read_json(folder.record, {"model": str, "dataset": str, "settings": dict}, problems)
    folds = read_json(folder.folds, {"k": int, "folds": list}, problems)
    settings = record.get("settings") or ({} if problems else hydra_settings(folder))
    settings = settings and of_any_version(settings)
    dataset = (
        record.get("dataset") or mapping_in(settings, "dataset").get("name") or options.get("dataset", "?")
    )
    shape = fold_shape(settings, folds)
    k, repeats = shape or (0, 1)
    results = {
        fold: result
        for fold in range(k * repeats)
        if (result := read_fold(folder.fold(fold), problems)) is not None
    }
    return Run(
        folder=path,
        model=record.get("model") or options.get("model", "?"),
        dataset=dataset,
        settings=settings if shape else {},
        options={group: option for group, option in options.items() if "/" not in str(group)},
        overrides=tuple(words),
        k=k,
        repeats=repeats,
        fixed=folds.get("fixed") is True,
        folds_hash=hash_of(folds["folds"]) if shape and folds else None,
        data_hash=record.get("data_sha256") if shape else None,
        results=results,
        error=" ".join(folder.error.read_text("utf-8", "replace").split())
        if folder.error.is_file()
        else None,
        problems=tuple(problems),
    )


def hash_of(parts: list) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read_fold(folder: FoldDir, problems: list[str]) -> FoldResult | None:
    """The result of a finished fold; None where there is none yet."""
    try:
        progress = folder.progress()
        return progress if isinstance(progress, FoldResult) else None
    except EginError as error:
        problems.append(str(error))
    return None


def fold_shape(settings: Settings, folds: dict) -> tuple[int, int] | None:
    """k and repeats, of the folds that were made or else as asked for; None where neither says."""
    if folds and folds["k"] > 0:
        return (folds["k"], len(folds["folds"]) // folds["k"]) if settings else None
    cv = mapping_in(settings, "cv")
    k, repeats = cv.get("k"), cv.get("repeats", 1)
    if isinstance(k, int) and isinstance(repeats, int) and k > 0 and repeats > 0:
        return k, repeats
    return None


def hydra_settings(folder: RunDir) -> Settings:
    """The settings of a job that never wrote them down itself, as run.json would have them."""
    try:
        content = OmegaConf.to_container(OmegaConf.load(folder.config), resolve=False)
        return settings_in(without_functions(content)) if isinstance(content, dict) else {}
    except (
        OSError,
        YAMLError,
        OmegaConfBaseException,
        KeyError,
        AttributeError,
        TypeError,
        ValueError,
        RecursionError,
    ):
        return {}


Content = TypeVar("Content", dict, list)


def read_yaml(path: Path, kind: type[Content], problems: list[str]) -> Content:
    """A mapping or a list, as asked for; empty where there is no file, or none that holds one."""
    if not path.is_file():
        return kind()
    try:
        content = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
        return content if isinstance(content, kind) else kind()
    except (OSError, YAMLError, OmegaConfBaseException, ValueError, RecursionError) as error:
        problems.append(f"{path}: not readable ({type(error).__name__})")
        return kind()


def read_json(path: Path, shape: Mapping[str, type], problems: list[str]) -> dict:
    """A JSON object with these entries; empty where there is no file, or none that holds one."""
    if not path.is_file():
        return {}
    try:
        return read_object(path, shape)
    except ConfigError as error:
        problems.append(str(error))
        return {}


def mapping_in(content: object, *keys: str) -> dict:
    """The mapping under these keys; empty where there is none."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}
