"""What training emits: one record an epoch, kept as CSV; protocols choose from it afterwards."""

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from egin_dgl.files import write_text


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of one fold. Accuracies are fractions; NaN where there is no such part, or it was not read."""

    epoch: int  # from 1
    train_loss: float
    train_accuracy: float
    val_loss: float
    val_accuracy: float
    val_score: float  # what the choice of an epoch goes by: the accuracy, unless another metric was asked for
    test_loss: float
    test_accuracy: float
    lr: float
    grad_norm: float  # mean over the steps, before clipping
    seconds: float
    C: float | None = (
        None  # of a kernel machine, which has a row for each penalty; None, and no column, for networks
    )

    @property
    def validation_rank(self) -> tuple[float, float]:
        """Larger is better: score first (one that is not defined comes last), then the smaller loss."""
        return (-math.inf if math.isnan(self.val_score) else self.val_score, -self.val_loss)


History = list[EpochRecord]


def best_on_validation(history: History) -> EpochRecord:
    """The record that validation prefers, the earliest of equals."""
    return max(history, key=lambda record: record.validation_rank)


def write_history(path: str | Path, history: Iterable[EpochRecord]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    history = list(history)
    columns = [field.name for field in fields(EpochRecord)]
    names = [name for name in columns if any(getattr(record, name) is not None for record in history)]
    writer.writerow(names)
    for record in history:
        # repr keeps every digit, so that reading gives the same numbers; NaN is an empty cell.
        values = (getattr(record, name) for name in names)
        writer.writerow("" if isinstance(v, float) and math.isnan(v) else repr(v) for v in values)
    write_text(path, text.getvalue())


def read_history(path: str | Path) -> History:
    with open(path, encoding="utf-8", newline="") as file:
        return [
            EpochRecord(**{name: int(v) if name == "epoch" else float(v or "nan") for name, v in row.items()})
            for row in csv.DictReader(file)
        ]
