"""Stratified folds as an artefact: made from labels and a seed, saved as JSON, checked when read again."""

import hashlib
import json
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from egin_dgl.errors import ConfigError, DataError
from egin_dgl.files import write_text

# What parts are called in tables.
PARTS = dict.fromkeys(("train", "training"), "train") | dict.fromkeys(("test", "testing"), "test")
PARTS |= dict.fromkeys(("validation", "valid", "val", "dev"), "validation")


@dataclass(frozen=True, repr=False)
class Split:
    """Graph indices of the three parts; `validation` may be empty."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def __repr__(self) -> str:
        sizes = f"{len(self.train)} train, {len(self.validation)} validation, {len(self.test)} test"
        return f"Split({sizes})"


@dataclass(frozen=True, repr=False)
class Folds:
    """Every k parts in a row, one repetition, are disjoint and together hold every graph once."""

    dataset: str
    seed: int
    labels_hash: str
    k: int
    parts: tuple[np.ndarray, ...]
    fixed: bool = (
        False  # one split: the parts are test, validation (if any) and train, and do not change places
    )

    def __repr__(self) -> str:
        graphs = sum(map(len, self.parts[: self.k]))
        times = f" {self.repeats} times" if self.repeats > 1 else ""
        return f"Folds({self.dataset!r}: {graphs} graphs in {self.k} parts{times}, seed {self.seed})"

    @property
    def repeats(self) -> int:
        return len(self.parts) // self.k

    @property
    def n(self) -> int:
        return sum(len(part) for part in self.parts[: self.k])

    def split(self, fold: int, validation: bool) -> Split:
        """Part `fold` is the test part, the next one of its repetition validates if asked, the others train."""
        if not isinstance(fold, int) or not 0 <= fold < len(self.parts):
            raise ConfigError(f"cv.fold must be a number from 0 to {len(self.parts) - 1}, got {fold!r}")
        if self.fixed and fold > 0:
            raise ConfigError(
                f"cv.fold must be 0, as the data name one split into train and test, got {fold}"
            )
        if self.fixed and self.k < 2 + validation:
            raise ConfigError("the data name no validation part: say cv.validation=false")
        if self.k < 2 + validation:
            raise ConfigError(f"cv.k must be at least {2 + validation} for this protocol, got {self.k}")
        repeat, test = divmod(fold, self.k)
        parts = self.parts[repeat * self.k : (repeat + 1) * self.k]
        held_out = {test, (test + 1) % self.k} if validation else {test}
        train = [part for i, part in enumerate(parts) if i not in held_out]
        return Split(
            train=np.sort(np.concatenate(train)),
            validation=parts[(test + 1) % self.k] if validation else np.empty(0, dtype=np.int64),
            test=parts[test],
        )

    def save(self, path: str | Path, ids: Sequence[str] = ()) -> None:
        """With what graphs are called, where that is more than their numbers from 0 or 1 on."""
        counted = any(list(ids) == [str(first + i) for i in range(len(ids))] for first in (0, 1))
        record = {
            "dataset": self.dataset,
            "n": self.n,
            "k": self.k,
            "repeats": self.repeats,
            "seed": self.seed,
            "labels_hash": self.labels_hash,
            **({"fixed": True} if self.fixed else {}),
            **({} if counted else {"ids": list(ids)}),
            "parts": [part.tolist() for part in self.parts],
        }
        write_text(path, json.dumps(record) + "\n")


def make_folds(
    labels: np.ndarray,
    k: int = 10,
    seed: int = 0,
    dataset: str = "",
    groups: np.ndarray | None = None,
    repeats: int = 1,
) -> Folds:
    """Give graphs, in random order and class by class, to the part that has fewest of that class, then fewest in all.

    Parts differ by at most one graph, and so do the counts of each class in them, also where a class has fewer than
    k members (scikit-learn's StratifiedKFold refuses those). `groups` (n,) are never split, for example duplicates:
    they are placed first, the largest before all, and cost the balance what they must. With `repeats`, the same again
    in other random orders; the first repetition does not depend on how many follow.
    """
    labels = np.asarray(labels)
    if not isinstance(repeats, int) or repeats < 1:
        raise ConfigError(f"cv.repeats must be a number from 1 on, got {repeats!r}")
    if not isinstance(k, int) or not 2 <= k <= len(labels):
        raise ConfigError(
            f"cv.k must be a number from 2 to the {len(labels)} graphs of the dataset, got {k!r}"
        )
    classes, numbers = np.unique(labels, return_inverse=True)
    groups = np.arange(len(labels)) if groups is None else np.asarray(groups)
    parts = []
    for repeat in range(repeats):
        generator = np.random.default_rng(seed if repeat == 0 else (seed, repeat))
        parts += deal(generator.permutation(len(labels)), numbers, len(classes), groups, k)
    if not all(map(len, parts)):
        raise ConfigError(
            f"cv.k={k} parts cannot be filled by {len(np.unique(groups))} groups that stay together; use a smaller cv.k"
        )
    return Folds(dataset, seed, hash_labels(labels), k, tuple(parts))


def folds_from_column(parts: Sequence[str], labels: np.ndarray, seed: int = 0, dataset: str = "") -> Folds:
    """The folds that the data themselves name: train, validation and test, or the number of each graph's fold."""
    found = sorted(set(parts))
    if all(re.fullmatch(r"\d+", part, re.ASCII) for part in found):
        names = sorted(found, key=int)
        if len(names) < 2:
            raise DataError(f"dataset.split_column has one fold only ({names[0]}); at least two are needed")
        if len({int(name) for name in names}) < len(names):
            raise DataError(f"dataset.split_column writes one fold in two ways: {', '.join(names)}")
        roles = {name: name for name in names}
    else:
        roles = {part: PARTS.get(part.lower(), "") for part in found}
        if unknown := [part for part in found if not roles[part]]:
            raise DataError(
                f"dataset.split_column must hold train, validation and test, or numbers of folds, not {unknown[0]!r}"
            )
        names = [role for role in ("test", "validation", "train") if role in roles.values()]
        if missing := {"test", "train"} - set(names):
            raise DataError(f"dataset.split_column names no graph {' or '.join(sorted(missing))}")
    of_graph = np.array([roles[part] for part in parts])
    chosen = tuple(np.flatnonzero(of_graph == name) for name in names)
    return Folds(dataset, seed, hash_labels(labels), len(names), chosen, fixed="train" in names)


def deal(
    order: np.ndarray, numbers: np.ndarray, classes: int, groups: np.ndarray, k: int
) -> list[np.ndarray]:
    """One repetition: the k parts, from the graphs' order, class numbers and groups."""
    members: dict[int, list[int]] = {}
    for graph in order.tolist():
        members.setdefault(int(groups[graph]), []).append(graph)
    counts = np.zeros((k, classes), dtype=np.int64)
    parts: list[list[int]] = [[] for _ in range(k)]
    for group in sorted(members.values(), key=lambda group: (-len(group), numbers[group[0]])):
        content = np.bincount(numbers[group], minlength=classes)
        place = np.lexsort((counts.sum(axis=1), counts @ content))[0]
        counts[place] += content
        parts[place] += group
    return [np.sort(np.array(part)) for part in parts]


def fold_numbers(chosen: int | list[int]) -> list[int]:
    """cv.fold as a list: the folds that are run, each once."""
    numbers = chosen if isinstance(chosen, list) else [chosen]
    if not numbers or len(set(map(str, numbers))) < len(numbers):
        raise ConfigError(f"cv.fold must be a number or a list of different numbers, got {chosen!r}")
    return numbers


def load_folds(path: str | Path, labels: np.ndarray, dataset: str = "") -> Folds:
    """Read folds saved before; they must be of the same dataset with the same labels, and hold each graph once."""
    if not isinstance(path, (str, Path)):
        raise ConfigError(f"cv.folds_file must be the path of a folds.json, got {path!r}")
    path = Path(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        parts = tuple(
            np.array([operator.index(graph) for graph in part], dtype=np.int64) for part in record["parts"]
        )
        seed, k = operator.index(record["seed"]), operator.index(record["k"])
        fixed = record.get("fixed", False) is True
        folds = Folds(str(record["dataset"]), seed, str(record["labels_hash"]), k, parts, fixed)
    except FileNotFoundError:
        raise DataError(f"{path}: no such folds file") from None
    except OSError as error:
        raise DataError(f"cannot read the folds file {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DataError(f"{path}: not a folds file ({type(error).__name__}: {error})") from error
    if dataset and folds.dataset != dataset:
        raise DataError(f"{path}: these folds are of {folds.dataset}, not of {dataset}")
    if folds.labels_hash != hash_labels(labels):
        raise DataError(
            f"{path}: these folds were made for other labels than those of the {len(labels)} graphs here"
        )
    repetitions = [parts[i : i + k] for i in range(0, len(parts), k)] if 0 < k <= len(parts) else []
    if not repetitions or any(
        len(one) < k or not np.array_equal(np.sort(np.concatenate(one)), np.arange(len(labels)))
        for one in repetitions
    ):
        raise DataError(f"{path}: the folds do not hold each of the {len(labels)} graphs exactly once")
    if empty := [number for number, part in enumerate(parts) if not len(part)]:
        raise DataError(f"{path}: part {empty[0]} is empty")
    return folds


def hash_labels(labels: np.ndarray) -> str:
    """A fingerprint of the labels in their order."""
    return hashlib.sha256(np.asarray(labels, dtype="<i8").tobytes()).hexdigest()
