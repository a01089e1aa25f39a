"""What training emits: one record an epoch, kept as CSV; protocols choose from it afterwards."""

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
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
    val_score: (
        float  # the metric that the choice of an epoch goes by: the accuracy, unless another was asked for
    )
    test_loss: float
    test_accuracy: float
    lr: float
    grad_norm: float  # mean over the steps, before clipping
    seconds: float
    # val_score and val_loss as the choice sees them, averaged over a trailing window; NaN where it is not yet full.
    # None: of a run made before there were windows, which goes on choosing by single epochs.
    choice_score: float | None = None
    choice_loss: float | None = None
    C: float | None = (
        None  # of a kernel machine, which has a row for each penalty; None, and no column, for networks
    )

    @property
    def chosen_by(self) -> float:
        """The score that the choice goes by."""
        return self.val_score if self.choice_score is None else self.choice_score

    @property
    def validation_rank(self) -> tuple[float, float]:
        """Larger is better: score first (one that is not defined comes last), then the smaller loss."""
        loss = self.val_loss if self.choice_loss is None else self.choice_loss
        return tuple(-math.inf if math.isnan(value) else value for value in (self.chosen_by, -loss))


History = list[EpochRecord]


def best_on_validation(history: History) -> EpochRecord:
    """The record that validation prefers, the earliest of equals."""
    return max(history, key=lambda record: record.validation_rank)


def with_choice(history: History, record: EpochRecord, window: int) -> EpochRecord:
    """The record that comes after `history`, with its score and loss averaged over the last `window` epochs.

    A validation part of 18 graphs cannot rank a hundred epochs: the best of them is the luckiest. The epoch that ends
    the best stretch is the better guess.
    """
    recent = [*history[max(0, len(history) + 1 - window) :], record]
    full = len(recent) == window
    return replace(
        record,
        choice_score=math.fsum(r.val_score for r in recent) / window if full else math.nan,
        choice_loss=math.fsum(r.val_loss for r in recent) / window if full else math.nan,
    )


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
        writer.writerow("" if v is None or math.isnan(v) else repr(v) for v in values)
    write_text(path, text.getvalue())


def read_history(path: str | Path) -> History:
    with open(path, encoding="utf-8", newline="") as file:
        return [
            EpochRecord(**{name: int(v) if name == "epoch" else float(v or "nan") for name, v in row.items()})
            for row in csv.DictReader(file)
        ]
