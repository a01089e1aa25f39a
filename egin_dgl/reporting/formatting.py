"""How numbers are written, scores, which are fractions, in % and losses as they are; and how protocols are told."""

from collections.abc import Sequence
from dataclasses import dataclass

from egin_dgl.evaluation.metrics import METRICS


@dataclass(frozen=True)
class Unit:
    """Of the values of a metric."""

    factor: int
    digits: int
    remark: str  # after a metric's name
    name: str  # after a difference

    def rounded(self, value: float) -> float:
        """Two values that print alike are equally good."""
        return round(self.factor * value, self.digits)

    def text(self, value: float) -> str:
        return f"{self.factor * value:.{self.digits}f}"

    def exact(self, value: float | None) -> str:
        """To the millionth, for those who compute further; nothing for None."""
        return "" if value is None else f"{self.factor * value:.{self.digits + 3}f}"

    def signed(self, value: float) -> str:
        """With a true minus."""
        return f"{self.factor * value:+.{self.digits}f}".replace("-", "−")

    def spread(self, mean: float, std: float) -> str:
        return f"{self.text(mean)} ± {self.text(std)}"


PERCENT = Unit(100, 1, " in %", " points")
PLAIN = Unit(1, 3, " (smaller is better)", "")

# How a protocol chose its epoch: in a sentence, and in a column.
CHOSEN = {
    "selected": ("per fold, on the validation part", "validation"),
    "common_epoch": ("on the test parts together (optimistic)", "test: optimistic"),
    "best_per_fold": ("on each test part (most optimistic)", "own test: optimistic"),
    "last": ("in advance", "nothing"),
    "last_20": ("in advance, mean of the last {averaged}", "nothing, mean of {averaged}"),
}


def unit_of(metric: str) -> Unit:
    return PLAIN if METRICS[metric].is_loss else PERCENT


def marked(protocol: str, optimistic: bool) -> str:
    """A protocol's name; an optimistic one is called so wherever its numbers stand."""
    return f"{protocol} (optimistic)" if optimistic else protocol


def span(values: Sequence[float]) -> str:
    """From the smallest to the largest of the values; nothing for none."""
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def counted(number: int, noun: str) -> str:
    """1 fold, 2 folds, 1,000 classes."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
