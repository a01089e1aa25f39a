"""Formatting of numbers and protocols: scores in %, losses as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from egin_dgl.evaluation.metrics import METRICS


@dataclass(frozen=True)
class Unit:
    """The unit of a metric's values."""

    factor: int
    digits: int
    remark: str  # after the name of a metric
    name: str  # after a difference

    def round(self, value: float) -> float:
        """The value as printed: two values that print alike are equally good."""
        return round(self.factor * value, self.digits)

    def text(self, value: float) -> str:
        return f"{self.factor * value:.{self.digits}f}"

    def precise(self, value: float | None) -> str:
        """With three more digits, for further computation; empty for None."""
        return "" if value is None else f"{self.factor * value:.{self.digits + 3}f}"

    def signed(self, value: float) -> str:
        """With a sign, a typographic minus for negative values; what prints as zero is positive."""
        return f"{self.round(value) + 0.0:+.{self.digits}f}".replace("-", "−")

    def mean_std(self, mean: float, std: float) -> str:
        return f"{self.text(mean)} ± {self.text(std)}"


PERCENT = Unit(100, 1, " in %", " points")
SMALLER = Unit(1, 3, " (smaller is better)", "")
LARGER = Unit(1, 3, "", "")

# How a protocol chooses its epoch: in a sentence, and in a column.
EPOCH_CHOICE = {
    "selected": ("per fold on the validation set", "validation"),
    "common_epoch": ("for all folds together on the test sets (optimistic)", "test: optimistic"),
    "best_per_fold": ("per fold on the test set (most optimistic)", "test: optimistic"),
    "last": ("in advance: the last", "fixed: last"),
    "last_20": ("in advance: mean of the last {averaged}", "fixed: mean of {averaged}"),
}


def unit_of(metric: str) -> Unit:
    found = METRICS[metric]
    return SMALLER if found.is_loss else PERCENT if found.is_fraction else LARGER


def protocol_label(protocol: str, optimistic: bool) -> str:
    """The name of a protocol, marked if it looks at test sets."""
    return f"{protocol} (optimistic)" if optimistic else protocol


def format_range(values: Sequence[float]) -> str:
    """Smallest to largest value; empty for no values."""
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def pluralize(number: int, noun: str) -> str:
    """1 fold, 2 folds, 1,000 classes."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
