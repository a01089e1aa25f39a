"""Find and read run directories: what each run is, which folds are finished, and why others are not.

A file that cannot be read does not stop the reading: the error is listed with the run, and the fold counts as missing.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from egin_dgl.data.splits import fold_numbers
from egin_dgl.errors import ConfigError, DataError, EginError, escape_control
from egin_dgl.evaluation.history import FoldResult
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.schemas import FoldsFile, read_object
from egin_dgl.runs.settings import RunSpec, Settings, result_settings


@dataclass(frozen=True, repr=False)
class Run:
    """One run. Its texts are escaped for printing.

    `settings` is empty if run.json is damaged; such a run is listed as incomplete, but has no place in a table.
    """

    folder: Path
    model: str  # as in tables; the name of the option until the model was built
    dataset: str
    settings: Settings = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)  # the option chosen of each config group
    overrides: tuple[str, ...] = ()
    k: int = 0
    repeats: int = 1
    fixed: bool = False  # the data define one split, which is fold 0
    folds_hash: str | None = None  # of the graphs and labels of all folds; None: no folds yet
    data_hash: str | None = None  # None: no data read yet
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
        """Number of folds; a holdout has one, its split."""
        one = self.fixed or self.settings.get("cv", {}).get("holdout")
        return 1 if one else self.k * self.repeats

    @property
    def expected(self) -> list[int]:
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
        if self.error:
            return self.error
        if self.problems:
            return "; ".join(self.problems)
        if not self.results:
            return "no fold is finished"
        return f"{len(self.results)} of {len(self.expected)} folds are finished"

    def finished_at(self, fold: int) -> float:
        """Time at which a finished fold was written, in seconds."""
        return RunDir(self.folder).fold(fold).checkpoint.stat().st_mtime


def find_runs(directories: Sequence[str | Path]) -> list[Run]:
    """Return all runs in and below the directories, sorted by directory and by the numbers in their names."""
    found: dict[Path, Run] = {}
    for directory in map(Path, directories):
        if not directory.is_dir():
            raise ConfigError(f"{directory}: no such directory")
        for path in walk_runs(directory, set()):
            if path.resolve() not in found:
                found[path.resolve()] = read_run(path)
    if not found:
        raise DataError(f"no run.json in or below {', '.join(map(str, directories))}")
    return list(found.values())


def walk_runs(directory: Path, visited: set[Path]) -> Iterator[Path]:
    """Yield run directories; links are followed, each directory is entered once."""
    if directory.resolve() in visited:
        return
    visited.add(directory.resolve())
    if RunDir(directory).exists:
        yield directory
        return
    inner = [path for path in directory.iterdir() if path.is_dir() and not path.name.startswith(".")]
    for path in sorted(inner, key=lambda path: natural_key(path.name)):
        yield from walk_runs(path, visited)


def natural_key(name: str) -> list[str | int]:
    """Sort key that puts 9_gin before 10_gin."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def read_run(path: Path, with_results: bool = True) -> Run:
    """Read what a directory says of its run; `with_results` also the results of its folds."""
    folder, problems = RunDir(path), list[str]()
    record, folds = dict[str, Any](), dict[str, Any]()
    try:
        record = folder.read_record()
        folds = read_object(folder.folds, FoldsFile) if folder.folds.is_file() else {}
    except ConfigError as damage:
        problems.append(str(damage))
    spec = RunSpec.from_json(record) if record else RunSpec({})
    shape = fold_shape(spec.settings, folds)
    k, repeats = shape or (0, 1)
    results = {}
    for number in fold_directories(path) if with_results else ():
        try:
            progress = folder.fold(number).progress()
        except EginError as failure:
            problems.append(str(failure))
            continue
        if isinstance(progress, FoldResult) and number < k * repeats:
            results[number] = progress
    content = [folds.get("folds"), folds.get("labels_hash")]
    folds_hash = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    error = " ".join(folder.error.read_text("utf-8", "replace").split()) if folder.error.is_file() else None
    return Run(
        folder=path,
        model=escape_control(record.get("model", "?")),
        dataset=escape_control(record.get("dataset", "?")),
        settings=result_settings(spec.settings) if shape else {},
        options={escape_control(group): escape_control(option) for group, option in spec.choices.items()},
        overrides=tuple(map(escape_control, spec.overrides)),
        k=k,
        repeats=repeats,
        fixed=folds.get("fixed") is True,
        folds_hash=folds_hash if shape and folds else None,
        data_hash=record.get("data_sha256") if shape else None,
        results=results,
        error=None if error is None else escape_control(error),
        problems=tuple(map(escape_control, problems)),
    )


def fold_directories(path: Path) -> list[int]:
    """Numbers of the folds that have a directory."""
    names = (fold.name.removeprefix("fold_") for fold in path.glob("fold_*"))
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


def fold_shape(settings: Settings, folds: dict) -> tuple[int, int] | None:
    """Return k and repeats of folds.json, or else of the settings; None without settings."""
    if not settings:
        return None
    if folds:
        return folds["k"], len(folds["folds"]) // folds["k"]
    return settings["cv"].get("k", 1), settings["cv"].get("repeats", 1)


def choose_folds(run: Run, folds: Sequence[int] | None) -> list[int]:
    """The folds to load: all, or those given; each must be finished."""
    directory = RunDir(run.folder)
    # A finished run has weights of every fold: a file that is missing there is an error about this file.
    all_finished = directory.summary.exists()
    expected = [fold for fold in run.expected if fold in range(run.whole)]
    finished = [fold for fold in expected if all_finished or directory.fold(fold).has_final_weights]
    if folds is None and len(finished) < len(expected):
        use = f"; fold={finished} uses these, and" if finished else ";"
        state = f"{len(finished)} of {len(expected)} folds are finished"
        raise ConfigError(f"{run.folder}: {state}{use} resume={run.folder} trains the others")
    if folds is not None and not folds:
        raise ConfigError("folds must name at least one fold")
    for fold in folds or ():
        if fold not in finished:
            valid = ", ".join(map(str, finished)) or "none"
            raise ConfigError(f"{run.folder} has no finished fold {fold!r}; valid: {valid}")
    return finished if folds is None else sorted(set(folds))
