"""What training emits: one record an epoch; protocols choose from them afterwards."""

import math
from dataclasses import dataclass, replace


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
    def score(self) -> float:
        """Of the test part: what protocols read. Another task would have another number here than the accuracy."""
        return self.test_accuracy

    @property
    def validated(self) -> bool:
        """Whether there was a validation part."""
        return not math.isnan(self.val_accuracy)

    @property
    def chosen_by(self) -> float:
        """The score that the choice goes by."""
        return self.val_score if self.choice_score is None else self.choice_score

    @property
    def validation_rank(self) -> tuple[float, float]:
        """Larger is better: score first (one that is not defined comes last), then the smaller loss."""
        loss = self.val_loss if self.choice_loss is None else self.choice_loss
        score, gain = (-math.inf if math.isnan(value) else value for value in (self.chosen_by, -loss))
        return score, gain


History = list[EpochRecord]


def best_on_validation(history: History) -> EpochRecord:
    """The record that validation prefers, the earliest of equals."""
    return max(history, key=lambda record: record.validation_rank)


def kept_record(history: History) -> EpochRecord:
    """The record whose model is kept: what validation prefers, and without one the last.

    The last penalty of a kernel machine is the largest, which nobody would take: the middle one stands in for a choice.
    """
    if history[0].validated:
        return best_on_validation(history)
    return history[-1] if history[0].C is None else history[(len(history) - 1) // 2]


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
