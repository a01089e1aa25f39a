"""Stratified folds as an artefact: made from labels and a seed, saved as JSON, checked when read again."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from egin_dgl.errors import ConfigError, DataError
from egin_dgl.files import write_text


@dataclass(frozen=True)
class Split:
    """Graph indices of the three parts; `validation` may be empty."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Folds:
    """k disjoint parts that together hold every graph once."""

    dataset: str
    seed: int
    labels_hash: str
    parts: tuple[np.ndarray, ...]

    @property
    def k(self) -> int:
        return len(self.parts)

    @property
    def n(self) -> int:
        return sum(len(part) for part in self.parts)

    def split(self, fold: int, validation: bool) -> Split:
        """Part `fold` is the test part, the next one validates if asked, the others train."""
        if not isinstance(fold, int) or not 0 <= fold < self.k:
            raise ConfigError(f"cv.fold must be a number from 0 to {self.k - 1}, got {fold!r}")
        if self.k < 2 + validation:
            raise ConfigError(f"cv.k must be at least {2 + validation} for this protocol, got {self.k}")
        held_out = {fold, (fold + 1) % self.k} if validation else {fold}
        train = [part for i, part in enumerate(self.parts) if i not in held_out]
        return Split(
            train=np.sort(np.concatenate(train)),
            validation=self.parts[(fold + 1) % self.k] if validation else np.empty(0, dtype=np.int64),
            test=self.parts[fold],
        )

    def save(self, path: str | Path) -> None:
        record = {
            "dataset": self.dataset,
            "n": self.n,
            "k": self.k,
            "seed": self.seed,
            "labels_hash": self.labels_hash,
            "parts": [part.tolist() for part in self.parts],
        }
        write_text(path, json.dumps(record) + "\n")


def make_folds(
    labels: np.ndarray, k: int = 10, seed: int = 0, dataset: str = "", groups: np.ndarray | None = None
) -> Folds:
    """Give graphs, in random order and class by class, to the part that has fewest of that class, then fewest in all.

    Parts differ by at most one graph, and so do the counts of each class in them, also where a class has fewer than
    k members (scikit-learn's StratifiedKFold refuses those). `groups` (n,) are never split, for example duplicates:
    they are placed first, the largest before all, and cost the balance what they must.
    """
    labels = np.asarray(labels)
    if not isinstance(k, int) or not 2 <= k <= len(labels):
        raise ConfigError(
            f"cv.k must be a number from 2 to the {len(labels)} graphs of the dataset, got {k!r}"
        )
    classes, numbers = np.unique(labels, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    groups = np.arange(len(labels)) if groups is None else np.asarray(groups)
    members: dict[int, list[int]] = {}
    for graph in order.tolist():
        members.setdefault(int(groups[graph]), []).append(graph)
    counts = np.zeros((k, len(classes)), dtype=np.int64)
    parts: list[list[int]] = [[] for _ in range(k)]
    for group in sorted(members.values(), key=lambda group: (-len(group), numbers[group[0]])):
        content = np.bincount(numbers[group], minlength=len(classes))
        place = np.lexsort((counts.sum(axis=1), counts @ content))[0]
        counts[place] += content
        parts[place] += group
    return Folds(dataset, seed, hash_labels(labels), tuple(np.sort(np.array(part)) for part in parts))


def load_folds(path: str | Path, labels: np.ndarray, dataset: str = "") -> Folds:
    """Read folds saved before; they must be of the same dataset with the same labels, and hold each graph once."""
    path = Path(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        parts = tuple(np.array(part, dtype=np.int64) for part in record["parts"])
        folds = Folds(str(record["dataset"]), int(record["seed"]), str(record["labels_hash"]), parts)
    except FileNotFoundError:
        raise DataError(f"{path}: no such folds file") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a folds file ({type(error).__name__}: {error})") from error
    if dataset and folds.dataset != dataset:
        raise DataError(f"{path}: these folds are of {folds.dataset}, not of {dataset}")
    if folds.labels_hash != hash_labels(labels):
        raise DataError(
            f"{path}: these folds were made for other labels than those of the {len(labels)} graphs here"
        )
    members = np.sort(np.concatenate(parts)) if parts else np.empty(0)
    if not np.array_equal(members, np.arange(len(labels))):
        raise DataError(f"{path}: the folds do not hold each of the {len(labels)} graphs exactly once")
    return folds


def hash_labels(labels: np.ndarray) -> str:
    """A fingerprint of the labels in their order."""
    return hashlib.sha256(np.asarray(labels, dtype="<i8").tobytes()).hexdigest()
