"""Results of a trained fold: its history, one record per epoch, from which protocols select afterwards, and its logits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from torch import Tensor

from egin_dgl.evaluation.metrics import METRICS


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of one fold. Scores are values of the monitored metric; NaN for a split that is empty or was not evaluated."""

    epoch: int  # from 1
    train_loss: float
    train_score: float
    val_loss: float
    val_score: float
    test_loss: float
    test_score: float
    lr: float
    grad_norm: float  # mean over steps, before clipping
    seconds: float
    monitor_score: float = math.nan  # val_score and val_loss averaged over the last `monitor_window` epochs;
    monitor_loss: float = math.nan  # NaN before the window is full
    C: float | None = None  # penalty of a kernel machine, which has one row per value; None for networks
    metric: str = "accuracy"  # the monitored one: `trainer.monitor`, or the main metric of the task

    @property
    def has_validation(self) -> bool:
        return not math.isnan(self.val_loss)

    @property
    def test_gain(self) -> float:
        """The test score, with a sign by which larger is better."""
        return METRICS[self.metric].gain(self.test_score)

    @property
    def validation_rank(self) -> tuple[float, float]:
        """Sort key, larger is better: monitored score, then smaller loss; NaN ranks last."""
        values = METRICS[self.metric].gain(self.monitor_score), -self.monitor_loss
        score, gain = (-math.inf if math.isnan(value) else value for value in values)
        return score, gain


History = list[EpochRecord]


@dataclass(frozen=True, repr=False)
class FoldResult:
    """History and outputs of one fold: logits of classes or labels, values of a regression in their units.

    Shapes: test_logits (epochs, test graphs, outputs); validation_logits (validation graphs, outputs), of the saved
    model, None without a validation set; labels as in `GraphDataset`.
    """

    fold: int
    history: History
    test_logits: Tensor
    test_labels: Tensor
    parameters: int
    chosen: dict[str, object] | None = None  # settings selected by nested cross-validation
    validation_logits: Tensor | None = None
    validation_labels: Tensor | None = None
    task: str = "multiclass"

    def __repr__(self) -> str:
        end = self.history[-1] if self.history else None
        last = f", test {end.metric} {end.test_score:.3f} after the last" if end else ""
        sizes = f"{len(self.test_labels)} test graphs, {self.parameters} parameters"
        return f"FoldResult(fold {self.fold}: {len(self.history)} epochs{last}; {sizes})"


def best_validation_record(history: History) -> EpochRecord:
    """Record with the best validation rank, the earliest of equals."""
    return max(history, key=lambda record: record.validation_rank)


def selected_record(history: History) -> EpochRecord:
    """Record of the model that a fold saves: the best on validation, without a validation set the last.

    A kernel machine without a validation set saves its middle penalty: the last one is the largest, a poor default.
    """
    if history[0].has_validation:
        return best_validation_record(history)
    return history[-1] if history[0].C is None else history[(len(history) - 1) // 2]


def exact_mean(scores: Sequence[float]) -> float:
    """Mean of scores that are ratios of counts, rounded once: means that are equal as fractions are equal numbers."""
    if any(map(math.isnan, scores)):
        return math.nan
    return float(sum(map(as_ratio, scores), Fraction()) / len(scores))


@lru_cache(maxsize=4096)
def as_ratio(score: float) -> Fraction:
    """The ratio of counts that was rounded to a score; the score itself if there is none with a denominator up to 10⁶."""
    ratio = Fraction(score).limit_denominator(1_000_000)
    return ratio if abs(ratio - Fraction(score)) < Fraction(1, 10**14) else Fraction(score)


def average_monitor(history: History, record: EpochRecord, window: int) -> EpochRecord:
    """`record`, which follows `history`, with validation score and loss averaged over the last `window` epochs.

    A validation set of 18 graphs cannot rank a hundred epochs: the best single epoch is the luckiest one. The end of the
    best window is a better choice. Windows with equal counts of correct graphs tie exactly, see `exact_mean`; the smaller
    loss, then the earlier epoch, decides.
    """
    recent = [*history[max(0, len(history) + 1 - window) :], record]
    full = len(recent) == window
    return replace(
        record,
        monitor_score=exact_mean([r.val_score for r in recent]) if full else math.nan,
        monitor_loss=math.fsum(r.val_loss for r in recent) / window if full else math.nan,
    )
