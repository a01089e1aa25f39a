"""Rows compared over datasets: mean ranks, datasets won, and Friedman's test whether the rows differ at all."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.reporting.many_runs.table import ResultTable


@dataclass(frozen=True)
class Ranks:
    """Over the datasets where every row is complete; rank 1 is best, equals share the mean of their ranks."""

    rows: tuple[str, ...]
    datasets: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    won: tuple[int, ...]  # a dataset won by several is counted for each
    friedman_p: float | None  # None for fewer than three rows or datasets, or where all are equal
    protocol: str

    @property
    def order(self) -> list[int]:
        """Rows, the best first."""
        return sorted(range(len(self.rows)), key=lambda index: self.mean_ranks[index])

    @property
    def title(self) -> str:
        return f"Ranks over {len(self.datasets)} datasets, protocol {self.protocol}"

    @property
    def note(self) -> str:
        over = f"Over {', '.join(self.datasets)}, where every row is complete"
        if self.friedman_p is None:
            return f"{over}."
        verdict = "the rows differ" if self.friedman_p < 0.05 else "no difference between the rows is shown"
        return f"{over}. Friedman's test: p = {self.friedman_p:.3g}, {verdict}."


def rank(table: ResultTable) -> Ranks | None:
    """None where there is nothing to rank: it takes two rows, and two datasets where every row is complete."""
    layout = table.layout
    if layout.column_key != "dataset" or len(layout.rows) < 2:
        return None

    def whole(column: str) -> bool:
        entries = [table.entries.get((row, column)) for row in layout.rows]
        return all(entry is not None and entry.counts for entry in entries)

    datasets = [column for column in layout.columns if whole(column)]
    if len(datasets) < 2:
        return None
    # As printed, so that whoever ranks the table by hand finds the same, and every bold value is a dataset won.
    means = np.array(
        [
            [table.unit.rounded(table.entries[row, column].score.mean) for column in datasets]
            for row in layout.rows
        ]
    )
    if not METRICS[table.metric].is_loss:
        means = -means
    ranks = stats.rankdata(means, axis=0)
    p = None
    if min(means.shape) >= 3 and (means != means[0]).any():
        p = float(stats.friedmanchisquare(*means).pvalue)
    return Ranks(
        rows=tuple(layout.row_label(row) for row in layout.rows),
        datasets=tuple(datasets),
        mean_ranks=tuple(ranks.mean(axis=1).tolist()),
        won=tuple((means == means.min(axis=0)).sum(axis=1).tolist()),
        friedman_p=p,
        protocol=table.protocol_label,
    )
