"""How the values of a metric are written: scores, which are fractions, in %; losses as they are."""

from dataclasses import dataclass

from egin_dgl.evaluation.metrics import METRICS


@dataclass(frozen=True)
class Unit:
    factor: int
    digits: int
    remark: str  # after a metric's name
    name: str  # after a difference

    def rounded(self, value: float) -> float:
        """Two values that print alike are equally good."""
        return round(self.factor * value, self.digits)

    def text(self, value: float) -> str:
        return f"{self.factor * value:.{self.digits}f}"

    def exact(self, value: float) -> str:
        """To the millionth, for those who compute further."""
        return f"{self.factor * value:.{self.digits + 3}f}"

    def signed(self, value: float) -> str:
        """With a true minus."""
        return f"{self.factor * value:+.{self.digits}f}".replace("-", "−")

    def spread(self, mean: float, std: float) -> str:
        return f"{self.text(mean)} ± {self.text(std)}"


PERCENT = Unit(100, 1, " in %", " points")
PLAIN = Unit(1, 3, " (smaller is better)", "")


def unit_of(metric: str) -> Unit:
    return PLAIN if METRICS[metric].is_loss else PERCENT
