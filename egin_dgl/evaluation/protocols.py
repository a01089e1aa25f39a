"""Protocols: pure functions from the histories of the folds to one score with its spread.

Which epoch a published number was read at changes it by many points, so a table always names its protocol:

- selected: per fold the epoch best on validation, test read there. Honest.
- common_epoch: one epoch for all folds, where the mean test score peaks, as GIN's authors did. Optimistic.
- best_per_fold: the best test epoch of each fold. The most optimistic.
- last: the last epoch. Honest, if the number of epochs was not tuned on the test parts.
- last_20: the mean of the last 20 epochs, or of as many as there are, which is said.

A protocol that needs what was not measured (a validation part, or the test part at an epoch where it was left alone)
is None. So are last and last_20 of a kernel machine: it has a row for each penalty C instead of an epoch, and to read
the largest C, or the mean over several, would mean nothing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from egin_dgl.evaluation.history import History, best_on_validation
from egin_dgl.evaluation.statistics import interval


@dataclass(frozen=True)
class ProtocolResult:
    """The score of each fold, as a fraction; std over folds with ddof 0; `epochs` are those the test part was read at.

    Of kernel machines `epochs` are the rows of the history, and `penalties` the values of C in them.
    """

    per_fold: tuple[float, ...]
    epochs: tuple[int, ...] | None
    optimistic: bool
    penalties: tuple[float, ...] | None = None
    averaged: tuple[int, ...] | None = (
        None  # how many epochs of each fold, where the value is a mean over epochs
    )

    @property
    def mean(self) -> float:
        return float(np.mean(self.per_fold))

    @property
    def std(self) -> float:
        return float(np.std(self.per_fold))

    def to_dict(self, test_to_train: float) -> dict:
        """For summary.json; `test_to_train` is the ratio of the parts' sizes, which the interval depends on."""
        record: dict[str, object] = {"mean": self.mean, "std": self.std}
        record["interval"] = interval(self.per_fold, test_to_train)
        record["per_fold"] = list(self.per_fold)
        if self.penalties is not None:
            record["C"] = one_or_all(self.penalties)
        elif self.epochs is not None:
            record["epoch"] = one_or_all(self.epochs)
        if self.averaged is not None:
            record["averaged"] = one_or_all(self.averaged)
        return record | {"optimistic": self.optimistic}


def one_or_all(values: tuple) -> float | list:
    """What all folds have in common, or a value for each."""
    return values[0] if len(set(values)) == 1 else list(values)


def has_epochs(history: History) -> bool:
    """Whether it is a network's: only that has a learning rate (C was not always noted)."""
    return not math.isnan(history[0].lr)


def at_epochs(histories: Sequence[History], epochs: Sequence[int], optimistic: bool) -> ProtocolResult | None:
    """Read each fold's score at its epoch (from 1)."""
    rows = [history[epoch - 1] for history, epoch in zip(histories, epochs, strict=True)]
    scores, penalties = tuple(row.score for row in rows), tuple(row.C for row in rows if row.C is not None)
    if np.isnan(scores).any():
        return None
    return ProtocolResult(
        scores, tuple(epochs), optimistic, penalties if len(penalties) == len(rows) else None
    )


def selected(histories: Sequence[History]) -> ProtocolResult | None:
    """Best validation score, ties to the smaller validation loss, then to the earlier epoch."""
    if any(not record.validated for history in histories for record in history):
        return None
    return at_epochs(histories, [best_on_validation(h).epoch for h in histories], optimistic=False)


def common_epoch(histories: Sequence[History]) -> ProtocolResult | None:
    """The epoch at which the mean over folds peaks, among the epochs that every fold has reached."""
    reached = min(len(history) for history in histories)
    curves = np.array([[record.score for record in history[:reached]] for history in histories])
    if np.isnan(curves).any():
        return None
    best = int(curves.mean(axis=0).argmax()) + 1
    return at_epochs(histories, [best] * len(histories), optimistic=True)


def best_per_fold(histories: Sequence[History]) -> ProtocolResult | None:
    if any(math.isnan(record.score) for history in histories for record in history):
        return None
    epochs = [max(history, key=lambda record: record.score).epoch for history in histories]
    return at_epochs(histories, epochs, optimistic=True)


def last(histories: Sequence[History]) -> ProtocolResult | None:
    if not all(map(has_epochs, histories)):
        return None
    return at_epochs(histories, [len(history) for history in histories], optimistic=False)


def last_20(histories: Sequence[History]) -> ProtocolResult | None:
    ends = [history[-20:] for history in histories]
    scores = tuple(float(np.mean([record.score for record in end])) for end in ends)
    if np.isnan(scores).any() or not all(map(has_epochs, histories)):
        return None
    return ProtocolResult(scores, None, optimistic=False, averaged=tuple(map(len, ends)))


PROTOCOLS: dict[str, Callable[[Sequence[History]], ProtocolResult | None]] = {
    "selected": selected,
    "common_epoch": common_epoch,
    "best_per_fold": best_per_fold,
    "last": last,
    "last_20": last_20,
}


def read_by_all(histories: Sequence[History]) -> dict[str, ProtocolResult | None]:
    """All protocols on the same histories."""
    if not histories or not all(histories):
        raise ValueError("protocols need at least one fold, and at least one epoch of each")
    return {name: protocol(histories) for name, protocol in PROTOCOLS.items()}


def headline(results: dict[str, ProtocolResult | None]) -> str:
    """The honest protocol where there is a validation part, else the one of the paper's kind."""
    return "selected" if results["selected"] is not None else "common_epoch"
