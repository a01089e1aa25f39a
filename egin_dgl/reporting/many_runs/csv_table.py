"""table.csv, for further computation. A new column is a line of `csv_row`."""

import pandas as pd

from egin_dgl.evaluation.protocols import PROTOCOLS
from egin_dgl.reporting.formatting import PERCENT, format_range
from egin_dgl.reporting.many_runs.table import ResultTable, TableCell


def to_csv(table: ResultTable) -> str:
    """A line for each group of runs and protocol; a group without any value has one line without values."""
    tables = [ResultTable(table.pivot, protocol, table.metric, table.paper) for protocol in PROTOCOLS]
    rows = []
    for position in table.pivot.positions:
        found = [(one, one.cells[position]) for one in tables]
        scored = [(one, cell) for one, cell in found if cell.score]
        rows += [csv_row(one, cell) for one, cell in scored or found[:1]]
    return pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")


def csv_row(table: ResultTable, cell: TableCell) -> dict[str, object]:
    """Scores in % with four decimals, losses with six.

    `averaged` is the number of epochs of which a value is the mean; `validation` the score by which settings may be selected.
    """
    group, score, precise = cell.group, cell.score, table.unit.precise
    low, high = (score and group.interval(score)) or (None, None)
    return {
        "model": group.model,
        "dataset": group.dataset,
        **{key: group.value(key) for key in table.pivot.keys},
        "protocol": score and table.protocol,
        "optimistic": score and str(score.optimistic).lower(),
        "metric": table.metric,
        "mean": score and precise(score.mean),
        "std": score and precise(score.std if len(score.per_fold) > 1 else None),
        "low": precise(low),
        "high": precise(high),
        "validation_metric": group.value("trainer.monitor") if group.validation else None,
        "validation": PERCENT.precise(group.validation_score),
        "averaged": score and format_range(score.averaged or ()),
        "folds": len(group.results),
        "expected_folds": group.expected,
        "complete": str(group.complete).lower(),
        "seeds": " ".join(map(str, group.seeds)),
        "paper": score and cell.published and cell.published.mean,
        "difference": precise(cell.difference),
        "folder": ";".join(str(run.folder) for run in group.runs),
    }
