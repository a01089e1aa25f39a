"""All that a set of runs comes to: tables, ranks, a comparison, and the jobs that are not complete."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import MAIN
from egin_dgl.files import atomic_path, write_text
from egin_dgl.reporting.many_runs.comparison import ModelComparison, compare_models
from egin_dgl.reporting.many_runs.writing import (
    latex,
    long_csv,
    markdown,
    markdown_comparison,
    markdown_ranks,
)
from egin_dgl.reporting.many_runs.picture import results_figure
from egin_dgl.reporting.many_runs.ranks import Ranks, rank
from egin_dgl.reporting.many_runs.table import ResultTable, result_tables
from egin_dgl.runs.reading import Run


@dataclass(frozen=True)
class Report:
    tables: tuple[ResultTable, ...]  # one a protocol; none where no fold of any run is finished
    comparisons: tuple[tuple[ModelComparison, ...], ...]  # one a table, where it was asked for
    unfinished: tuple[Run, ...]

    @property
    def ranks(self) -> list[Ranks]:
        return [ranks for table in self.tables if (ranks := rank(table))]


def make_report(
    runs: Sequence[Run],
    protocol: str | None = None,
    metric: str = MAIN.name,
    paper: bool = False,
    compared: tuple[str, str] | None = None,
) -> Report:
    """`protocol` None is the runs' own, "all" makes a table of each; `compared` are two names of models."""
    tables = result_tables(runs, protocol, metric, paper)
    if compared and not tables:
        raise ConfigError(f"no fold of any run is finished: {' and '.join(compared)} cannot be compared")
    comparisons = [
        tuple(compare_models(table.layout, *compared, table.protocol, metric))
        for table in tables
        if compared is not None
    ]
    unfinished = tuple(run for run in runs if not run.complete)
    return Report(tuple(tables), tuple(comparisons), unfinished)


def write_table(folder: str | Path, report: Report) -> list[Path]:
    """Write table.md, table.tex, table.csv (all protocols) and table.png (the first table); nothing without a table."""
    if not report.tables:
        return []
    folder, first = Path(folder), report.tables[0]
    parts = [markdown(table) for table in report.tables]
    parts += [markdown_ranks(ranks) for ranks in report.ranks]
    parts += [markdown_comparison(comparison) for comparison in report.comparisons]
    if report.unfinished:
        jobs = "".join(f"- `{run.name}`: {run.reason}\n" for run in report.unfinished)
        parts.append(f"### Not complete\n\n{jobs}")
    texts = {
        "table.md": "\n".join(parts),
        "table.tex": "\n".join(latex(table) for table in report.tables),
        "table.csv": long_csv(first),
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    with atomic_path(folder / "table.png") as temporary:
        results_figure(first).savefig(temporary, format="png", dpi=120)
    return [folder / name for name in (*texts, "table.png")]
