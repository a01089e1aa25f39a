"""Evaluation protocols: pure functions from the histories of all folds to one score with its spread.

The epoch at which a test score is read changes a published number by many points, so every table names its protocol:

- selected: per fold the epoch best on validation. Unbiased.
- common_epoch: one epoch for all folds, where the mean test score is best, as in GIN. Optimistic.
- best_per_fold: the best test epoch of each fold. The most optimistic.
- last: the last epoch. Unbiased, if the number of epochs was not tuned on the test sets.
- last_20: the mean of the last 20 epochs, or of all if there are fewer.

A protocol is None if it needs values that were not computed: a validation set, or test scores at epochs where the test
set was not evaluated. A kernel machine has a row per penalty C instead of epochs, a forest a single row, so last and
last_20 are None.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from egin_dgl.evaluation.history import History, best_validation_record
from egin_dgl.evaluation.statistics import interval


@dataclass(frozen=True)
class ProtocolResult:
    """Scores of all folds; std over folds with ddof 0."""

    per_fold: tuple[float, ...]
    epochs: tuple[int, ...] | None  # at which test scores were read; rows of a kernel machine's history
    optimistic: bool
    penalties: tuple[float, ...] | None = None  # C of these rows
    averaged: tuple[int, ...] | None = None  # number of epochs averaged per fold

    @property
    def mean(self) -> float:
        return float(np.mean(self.per_fold))

    @property
    def std(self) -> float:
        return float(np.std(self.per_fold))

    def to_dict(self, test_to_train: float) -> dict:
        """Entry of summary.json; `test_to_train` is the ratio of the sizes of test and training set."""
        record: dict[str, object] = {"mean": self.mean, "std": self.std}
        record["interval"] = interval(self.per_fold, test_to_train)
        record["per_fold"] = list(self.per_fold)
        if self.penalties is not None:
            record["C"] = collapse(self.penalties)
        elif self.epochs is not None:
            record["epoch"] = collapse(self.epochs)
        if self.averaged is not None:
            record["averaged"] = collapse(self.averaged)
        return record | {"optimistic": self.optimistic}


def collapse(values: tuple) -> float | list:
    """One value if all folds have the same, else a list."""
    return values[0] if len(set(values)) == 1 else list(values)


def has_epochs(history: History) -> bool:
    """Whether the history is a network's: a forest has one row, a kernel machine has one per penalty C."""
    return not math.isnan(history[0].lr)


def has_probabilities(history: History) -> bool:
    """Whether logits are those of probabilities, which the decision values of a kernel machine are not."""
    return history[0].C is None


def at_epochs(histories: Sequence[History], epochs: Sequence[int], optimistic: bool) -> ProtocolResult | None:
    """Each fold's score at its epoch (from 1)."""
    rows = [history[epoch - 1] for history, epoch in zip(histories, epochs, strict=True)]
    scores, penalties = (
        tuple(row.test_score for row in rows),
        tuple(row.C for row in rows if row.C is not None),
    )
    if np.isnan(scores).any():
        return None
    return ProtocolResult(scores, tuple(epochs), optimistic, penalties or None)


def selected(histories: Sequence[History]) -> ProtocolResult | None:
    """Best validation score, ties to the smaller validation loss, then to the earlier epoch."""
    if any(not record.has_validation for history in histories for record in history):
        return None
    return at_epochs(histories, [best_validation_record(h).epoch for h in histories], optimistic=False)


def common_epoch(histories: Sequence[History]) -> ProtocolResult | None:
    """Epoch at which the mean over folds is best, among the epochs that every fold has reached."""
    reached = min(len(history) for history in histories)
    curves = np.array([[record.test_gain for record in history[:reached]] for history in histories])
    if np.isnan(curves).any():
        return None
    best = int(curves.mean(axis=0).argmax()) + 1
    return at_epochs(histories, [best] * len(histories), optimistic=True)


def best_per_fold(histories: Sequence[History]) -> ProtocolResult | None:
    if any(math.isnan(record.test_score) for history in histories for record in history):
        return None
    epochs = [max(history, key=lambda record: record.test_gain).epoch for history in histories]
    return at_epochs(histories, epochs, optimistic=True)


def last(histories: Sequence[History]) -> ProtocolResult | None:
    if not all(map(has_epochs, histories)):
        return None
    return at_epochs(histories, [len(history) for history in histories], optimistic=False)


def last_20(histories: Sequence[History]) -> ProtocolResult | None:
    ends = [history[-20:] for history in histories]
    scores = tuple(float(np.mean([record.test_score for record in end])) for end in ends)
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


def apply_protocols(histories: Sequence[History]) -> dict[str, ProtocolResult | None]:
    """All protocols on the same histories."""
    if not histories or not all(histories):
        raise ValueError("protocols need at least one fold and at least one epoch per fold")
    return {name: protocol(histories) for name, protocol in PROTOCOLS.items()}


def headline(results: dict[str, ProtocolResult | None]) -> str:
    """Protocol of the headline number: `selected`, or `common_epoch` without a validation set."""
    return "selected" if results["selected"] is not None else "common_epoch"
