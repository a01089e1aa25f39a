"""table.csv, for those who compute further. A new column is a line of `record`."""

import pandas as pd

from egin_dgl.evaluation.protocols import PROTOCOLS
from egin_dgl.reporting.formatting import PERCENT, span
from egin_dgl.reporting.many_runs.table import Entry, ResultTable


def long_csv(table: ResultTable) -> str:
    """A line for each cell and protocol; a cell without any value has one line without values."""
    tables = [ResultTable(table.layout, protocol, table.metric, table.paper) for protocol in PROTOCOLS]
    records = []
    for place in table.layout.places:
        found = [(one, one.entries[place]) for one in tables]
        scored = [(one, entry) for one, entry in found if entry.score]
        records += [record(one, entry) for one, entry in scored or found[:1]]
    return pd.DataFrame(records).to_csv(index=False, lineterminator="\n")


def record(table: ResultTable, entry: Entry) -> dict[str, object]:
    """Scores in % with four decimals, losses with six; `averaged` is the number of epochs that a value is the mean of.

    `validation` is what a search over settings may look at, and what the notes of a table quote.
    """
    cell, score, exact = entry.cell, entry.score, table.unit.exact
    low, high = (score and cell.interval(score)) or (None, None)
    return {
        "model": cell.model,
        "dataset": cell.dataset,
        **{key: cell.value(key) for key in table.layout.keys},
        "protocol": score and table.protocol,
        "optimistic": score and str(score.optimistic).lower(),
        "metric": table.metric,
        "mean": score and exact(score.mean),
        "std": score and exact(score.std if len(score.per_fold) > 1 else None),
        "low": exact(low),
        "high": exact(high),
        "validation_metric": cell.value("trainer.monitor") if cell.validation else None,
        "validation": PERCENT.exact(cell.validation_score),
        "averaged": score and span(score.averaged or ()),
        "folds": len(cell.results),
        "expected_folds": cell.expected,
        "complete": str(cell.complete).lower(),
        "seeds": " ".join(map(str, cell.seeds)),
        "paper": score and entry.published and entry.published.mean,
        "difference": exact(entry.difference),
        "folder": ";".join(str(run.folder) for run in cell.runs),
    }
