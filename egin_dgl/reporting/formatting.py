"""Formatting of numbers and protocols: fractions in %, other scores as they are."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from egin_dgl.evaluation.metrics import METRICS


@dataclass(frozen=True)
class Unit:
    """The unit of a metric's values."""

    factor: int
    digits: int
    remark: str  # after the name of a metric
    name: str  # after a difference
    significant: int = 0  # digits that a small value has at least
    bounds: tuple[float, float] = (-math.inf, math.inf)  # of values; an interval ends there

    def clip(self, value: float) -> float:
        return min(max(value, self.bounds[0]), self.bounds[1])

    def decimals(self, value: float) -> int:
        """An RMSE in eV may be a thousandth of one in kJ: small values have more decimals."""
        if not self.significant or not math.isfinite(value) or value == 0:
            return self.digits
        return max(self.digits, self.significant - 1 - math.floor(math.log10(abs(value))))

    def round(self, value: float, like: float | None = None) -> float:
        """The value as printed: two values that print alike are equally good."""
        return round(self.factor * value, self.decimals(value if like is None else like))

    def text(self, value: float, like: float | None = None) -> str:
        """With the decimals of the value `like`, by default its own."""
        return f"{self.factor * value:.{self.decimals(value if like is None else like)}f}"

    def precise(self, value: float | None) -> str:
        """With three more digits, for further computation; empty for None."""
        return "" if value is None else f"{self.factor * value:.{self.decimals(value) + 3}f}"

    def signed(self, value: float, like: float | None = None) -> str:
        """With a sign, a typographic minus for negative values; what prints as zero is positive."""
        decimals = self.decimals(value if like is None else like)
        return f"{self.round(value, like) + 0.0:+.{decimals}f}".replace("-", "−")

    def mean_std(self, mean: float, std: float) -> str:
        return f"{self.text(mean)} ± {self.text(std, like=mean)}"


PERCENT = Unit(100, 1, " in %", " points", bounds=(0, 1))
PLAIN = Unit(1, 3, "", "")
LOSS = Unit(1, 3, " (smaller is better)", "", bounds=(0, math.inf))
ERROR = Unit(1, 3, " (smaller is better)", "", 3, (0, math.inf))  # in the unit of the targets

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
    if found.is_loss:
        return LOSS if found.needs_probabilities else ERROR
    return PERCENT if found.is_fraction else PLAIN


def metrics_text(means: Mapping[str, float | None]) -> str:
    """Metrics as they are, not in %: auroc 0.954, log_loss 0.308; those that are undefined are left out."""
    known = {name: mean for name, mean in means.items() if mean is not None}
    units = {name: ERROR if unit_of(name) is ERROR else PLAIN for name in known}
    return ", ".join(f"{name} {units[name].text(mean)}" for name, mean in known.items())


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
