"""Stratified folds: made from labels and a seed, saved as JSON, validated when loaded."""

import hashlib
import json
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from egin_dgl.data.stratify import assign_by_class, assign_iteratively, indicators, members_of, strata
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.files import regular_file, write_text

# Accepted names of the three sets in a split column.
SPLIT_NAMES = dict.fromkeys(("train", "training"), "train") | dict.fromkeys(("test", "testing"), "test")
SPLIT_NAMES |= dict.fromkeys(("validation", "valid", "val", "dev"), "validation")


@dataclass(frozen=True, repr=False)
class Split:
    """Graph indices of the training, validation and test sets; `validation` may be empty."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def __repr__(self) -> str:
        return f"Split({len(self.train)} train, {len(self.validation)} validation, {len(self.test)} test)"


@dataclass(frozen=True, repr=False)
class Folds:
    """k folds, possibly repeated: each k consecutive entries of `indices` are a partition of all graphs."""

    dataset: str  # its name
    seed: int  # of the random order
    labels_hash: str  # `hash_labels` of the dataset
    k: int  # number of folds of one repetition
    indices: tuple[np.ndarray, ...]  # sorted graph indices of each fold
    fixed: bool = False  # a single split; `indices` are the test, validation (if any) and training sets

    def __repr__(self) -> str:
        times = f" {self.repeats} times" if self.repeats > 1 else ""
        return f"Folds({self.dataset!r}: {self.n} graphs in {self.k} folds{times}, seed {self.seed})"

    @property
    def repeats(self) -> int:
        return len(self.indices) // self.k

    @property
    def n(self) -> int:
        """Number of graphs."""
        return sum(map(len, self.indices[: self.k]))

    def split(self, fold: int, validation: bool) -> Split:
        """Fold `fold` is the test set, the next fold of its repetition the validation set if `validation`."""
        if not isinstance(fold, int) or not 0 <= fold < len(self.indices):
            raise ConfigError(f"cv.fold must be an integer from 0 to {len(self.indices) - 1}, got {fold!r}")
        if self.fixed and fold > 0:
            raise ConfigError(f"cv.fold must be 0, as there is a single split, got {fold}")
        if self.fixed and self.k < 2 + validation:
            raise ConfigError("the dataset defines no validation set: use cv.validation=false")
        if self.k < 2 + validation:
            raise ConfigError(f"cv.k must be at least {2 + validation} for this protocol, got {self.k}")
        repeat, test = divmod(fold, self.k)
        folds = self.indices[repeat * self.k : (repeat + 1) * self.k]
        held_out = {test, (test + 1) % self.k} if validation else {test}
        train = [indices for i, indices in enumerate(folds) if i not in held_out]
        return Split(
            train=np.sort(np.concatenate(train)),
            validation=folds[(test + 1) % self.k] if validation else np.empty(0, dtype=np.int64),
            test=folds[test],
        )

    def save(self, path: str | Path, ids: Sequence[str] = ()) -> None:
        """Write a folds.json, with the graphs' names unless they are 0, 1, 2, … or 1, 2, 3, …"""
        numbered = any(list(ids) == [str(first + i) for i in range(len(ids))] for first in (0, 1))
        record = {
            "dataset": self.dataset,
            "n": self.n,
            "k": self.k,
            "repeats": self.repeats,
            "seed": self.seed,
            "labels_hash": self.labels_hash,
            **({"fixed": True} if self.fixed else {}),
            **({} if numbered else {"ids": list(ids)}),
            "folds": [indices.tolist() for indices in self.indices],
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
    """Stratified k-fold cross-validation, by classes, by quantile bins of a real target, or by several targets jointly.

    Sizes of folds differ by at most one graph, and so do the counts of each class, also for classes with fewer than k
    members, which scikit-learn's StratifiedKFold rejects. Several targets are balanced by iterative stratification.

    Args:
        labels: Class of each graph, :math:`(G,)`, or targets :math:`(G, T)`.
        k: Number of folds.
        seed: Seed of the random order.
        dataset: Name of the dataset, recorded in the folds.
        groups: Group of each graph, :math:`(G,)`; a group is never split. Large groups unbalance the folds.
        repeats: Number of repetitions, each in another random order. The first one does not depend on `repeats`.

    >>> import numpy as np
    >>> folds = make_folds(np.array([0, 0, 0, 1, 1, 1]), k=3)
    >>> folds, folds.split(0, validation=True)
    (Folds('': 6 graphs in 3 folds, seed 0), Split(2 train, 2 validation, 2 test))
    """
    labels = np.asarray(labels)
    if not isinstance(repeats, int) or repeats < 1:
        raise ConfigError(f"cv.repeats must be an integer of at least 1, got {repeats!r}")
    if not isinstance(k, int) or not 2 <= k <= len(labels):
        raise ConfigError(f"cv.k must be an integer from 2 to {len(labels)}, the number of graphs, got {k!r}")
    groups = np.arange(len(labels)) if groups is None else np.asarray(groups)
    one_target = labels.ndim == 1 or labels.shape[1] == 1
    classes = (
        np.unique(strata(labels.reshape(-1)), return_inverse=True)[1] if one_target else indicators(labels)
    )
    assign = assign_by_class if one_target else assign_iteratively
    folds = []
    for repeat in range(repeats):
        generator = np.random.default_rng(seed if repeat == 0 else (seed, repeat))
        folds += assign(generator.permutation(len(labels)), classes, groups, k)
    if not all(map(len, folds)):
        raise ConfigError(
            f"cv.k={k} is more than {len(np.unique(groups))} groups of graphs can fill; use a smaller cv.k"
        )
    return Folds(dataset, seed, hash_labels(labels), k, tuple(folds))


def folds_from_column(splits: Sequence[str], labels: np.ndarray, seed: int = 0, dataset: str = "") -> Folds:
    """Folds given by the dataset: train, validation and test, or the number of each graph's fold."""
    found = sorted(set(splits))
    if all(re.fullmatch(r"\d+", value, re.ASCII) for value in found):
        names = sorted(found, key=int)
        if len(names) < 2:
            raise DataError(f"dataset.split_column has one fold only ({names[0]}); at least two are needed")
        if len({int(name) for name in names}) < len(names):
            raise DataError(f"dataset.split_column spells one fold in two ways: {', '.join(names)}")
        roles = {name: name for name in names}
    else:
        roles = {value: SPLIT_NAMES.get(value.lower(), "") for value in found}
        if unknown := [value for value in found if not roles[value]]:
            raise DataError(
                f"dataset.split_column must hold train, validation and test, or fold numbers, got {unknown[0]!r}"
            )
        names = [role for role in ("test", "validation", "train") if role in roles.values()]
        if missing := {"test", "train"} - set(names):
            raise DataError(f"dataset.split_column assigns no graph to {' or '.join(sorted(missing))}")
    assigned = np.array([roles[value] for value in splits])
    indices = tuple(np.flatnonzero(assigned == name) for name in names)
    return Folds(dataset, seed, hash_labels(labels), len(names), indices, fixed="train" in names)


def split_by_group_size(
    groups: np.ndarray, labels: np.ndarray, seed: int = 0, dataset: str = "", k: int = 10
) -> Folds:
    """One split into training (1 − 2/k), validation and test set (1/k each): groups by decreasing size fill one after the other.

    A group that would exceed the share of the training set goes to the validation set, or else to the test set. Of two groups
    of one size, that whose first graph comes later is placed first. With scaffolds as groups this is the scaffold split of
    DeepChem and OGB, which depends on no seed.

    Args:
        groups: Group of each graph, :math:`(G,)`.
        labels, seed, dataset: As in `make_folds`; they are recorded.
        k: 1/k of the graphs are validation graphs, 1/k test graphs.
    """
    if k < 3:
        raise ConfigError(f"cv.k must be at least 3 for a scaffold split, got {k}")
    members = members_of(np.arange(len(groups)), groups)
    train: list[int] = []
    validation: list[int] = []
    test: list[int] = []
    for group in sorted(members, key=lambda group: (len(group), group[0]), reverse=True):
        if k * (len(train) + len(group)) <= (k - 2) * len(groups):
            train += group
        elif k * (len(train) + len(validation) + len(group)) <= (k - 1) * len(groups):
            validation += group
        else:
            test += group
    sets = {"training": train, "validation": validation, "test": test}
    if empty := [name for name, graphs in sets.items() if not graphs]:
        raise ConfigError(
            f"the largest of {len(members)} scaffolds has {max(map(len, members))} of {len(groups)} molecules, which leaves the "
            f"{empty[0]} set empty: use cv.split_by=scaffold, which makes folds"
        )
    indices = tuple(np.sort(np.array(graphs, dtype=np.int64)) for graphs in (test, validation, train))
    return Folds(dataset, seed, hash_labels(labels), 3, indices, fixed=True)


def fold_numbers(fold: int | list[int]) -> list[int]:
    """cv.fold as a list of distinct fold numbers."""
    numbers = fold if isinstance(fold, list) else [fold]
    if not numbers or len(set(map(str, numbers))) < len(numbers):
        raise ConfigError(f"cv.fold must be an integer or a list of distinct integers, got {fold!r}")
    return numbers


def load_folds(path: str | Path, labels: np.ndarray, dataset: str = "") -> Folds:
    """Load a folds.json and check that it belongs to this dataset and holds each graph once per repetition."""
    if not isinstance(path, (str, Path)):
        raise ConfigError(f"cv.folds_file must be the path of a folds.json, got {path!r}")
    try:
        record = json.loads(regular_file(Path(path)).read_text(encoding="utf-8"))
        indices = tuple(
            np.array([operator.index(graph) for graph in fold], dtype=np.int64) for fold in record["folds"]
        )
        seed, k = operator.index(record["seed"]), operator.index(record["k"])
        fixed = record.get("fixed", False) is True
        folds = Folds(str(record["dataset"]), seed, str(record["labels_hash"]), k, indices, fixed)
    except OSError as error:
        raise DataError(f"cannot read the folds file {path}: {error.strerror or error}") from None
    except DataError:  # not a regular file
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DataError(f"{path}: not a folds file ({type(error).__name__}: {error})") from error
    if dataset and folds.dataset != dataset:
        raise DataError(f"{path}: these folds are of {folds.dataset}, not of {dataset}")
    if folds.labels_hash != hash_labels(labels):
        raise DataError(
            f"{path}: these folds were made for other labels than those of the {len(labels)} graphs here"
        )
    repetitions = [indices[i : i + k] for i in range(0, len(indices), k)] if 0 < k <= len(indices) else []
    if not repetitions or any(
        len(one) < k or not np.array_equal(np.sort(np.concatenate(one)), np.arange(len(labels)))
        for one in repetitions
    ):
        raise DataError(f"{path}: the folds do not hold each of the {len(labels)} graphs exactly once")
    if empty := [number for number, fold in enumerate(indices) if not len(fold)]:
        raise DataError(f"{path}: fold {empty[0]} is empty")
    return folds


def hash_labels(labels: np.ndarray) -> str:
    """sha256 of the labels in their order."""
    kind = "<i8" if np.asarray(labels).ndim == 1 else "<f8"
    return hashlib.sha256(np.asarray(labels, dtype=kind).tobytes()).hexdigest()
