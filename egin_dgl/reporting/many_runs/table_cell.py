"""The value of a group of runs in a table."""

import math
from dataclasses import dataclass

from egin_dgl.evaluation.protocols import ProtocolResult
from egin_dgl.reporting.formatting import Unit
from egin_dgl.reporting.many_runs.paper import Published
from egin_dgl.reporting.many_runs.run_groups import ABSENT, RunGroup


@dataclass(frozen=True)
class TableCell:
    """The value of a group of runs in a table."""

    group: RunGroup
    score: ProtocolResult | None
    unit: Unit
    published: Published | None = None
    test_sets: int = 0  # number of the test sets, see `number_test_sets`
    best: bool = False  # of the complete groups of its dataset with the same test sets

    @property
    def task(self) -> tuple[str, int]:
        """Scores are compared with those of the same dataset and test sets only."""
        return self.group.dataset, self.test_sets

    @property
    def comparable(self) -> float:
        """The mean as printed, for ranks and bold; NaN if folds are missing."""
        return self.unit.round(self.score.mean) if self.score and self.group.complete else math.nan

    @property
    def difference(self) -> float | None:
        """Difference from the published score, as a fraction."""
        if self.score is None or self.published is None or not self.group.complete:
            return None
        return self.score.mean - self.published.mean / 100

    @property
    def text(self) -> str:
        if self.score is None:
            return ABSENT if self.group.complete else self.group.state
        text = self.unit.text(self.score.mean)
        if len(self.score.per_fold) > 1:
            text = self.unit.mean_std(self.score.mean, self.score.std)
        if not self.group.complete:
            text += f" [{self.group.state}]"
        if self.published:
            difference = "" if self.difference is None else f", {self.unit.signed(self.difference)}"
            text += f" ({self.published.mean:.1f}{difference})"
        return text
