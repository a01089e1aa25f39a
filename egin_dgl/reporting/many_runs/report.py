"""The report on a set of runs: tables, ranks, comparisons and incomplete jobs, printed and written to files."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.console import Console

from egin_dgl.errors import ConfigError, escape_control
from egin_dgl.evaluation.protocols import PROTOCOLS
from egin_dgl.files import save_figure, write_text
from egin_dgl.reporting.formatting import format_range, unit_of
from egin_dgl.reporting.many_runs.comparison import (
    compare_models,
    comparison_table,
    rank_table,
    shared_datasets,
)
from egin_dgl.reporting.many_runs.renderers import TextTable, print_line, print_table, to_latex, to_markdown
from egin_dgl.reporting.many_runs.table import ResultTable, result_tables
from egin_dgl.reporting.many_runs.table_cell import TableCell
from egin_dgl.runs.reader import Run, find_runs

MAX_PANELS = 4  # of a figure in a row


@dataclass(frozen=True)
class Report:
    tables: list[ResultTable]  # one per task and protocol; none if no fold of any run is finished
    text_tables: list[TextTable]  # of results, ranks and comparisons
    unfinished: list[Run]


def make_report(
    runs: Sequence[Run],
    protocol: str | None = None,
    metric: str | None = None,
    paper: bool = False,
    compared: tuple[str, str] | None = None,
) -> Report:
    """Report on `runs`.

    Args:
        protocol: None for the runs' default, "all" for a table of each.
        paper: whether to show the published numbers.
        compared: names of two models to test against each other.
    """
    tables = result_tables(runs, protocol, metric, paper)
    texts = [table.text_table for table in tables]
    texts += [ranks for table in tables if (ranks := rank_table(table))]
    if compared and not tables:
        raise ConfigError(f"no fold of any run is finished: {' and '.join(compared)} cannot be compared")
    if compared:
        both = [table for table in tables if shared_datasets(table.pivot, *compared)] or tables[:1]
        texts += [comparison_table(compare_models(t.pivot, *compared, t.protocol, t.metric)) for t in both]
    return Report(tables, texts, [run for run in runs if not run.complete])


def print_report(report: Report, console: Console) -> None:
    for number, table in enumerate(report.text_tables):
        if number:
            console.print()
        print_table(table, console)
    if report.unfinished:
        if report.tables:
            console.print()
        jobs = "1 job is" if len(report.unfinished) == 1 else f"{len(report.unfinished)} jobs are"
        print_line(console, f"{jobs} not complete:")
        for run in report.unfinished:
            print_line(console, f"  {run.name}: {run.reason}")


def write_report(report: Report, directory: str | Path, console: Console) -> None:
    """Write table.md, table.tex, table.csv (all protocols) and a picture for each task; nothing without a table."""
    if not report.tables:
        return
    sections = [to_markdown(table) for table in report.text_tables]
    if report.unfinished:
        jobs = "".join(f"- `{run.name}`: {run.reason}\n" for run in report.unfinished)
        sections.append(f"### Not complete\n\n{jobs}")
    directory = Path(directory)
    firsts = list({id(table.pivot): table for table in reversed(report.tables)}.values())[
        ::-1
    ]  # of each task
    write_text(directory / "table.md", "\n".join(sections))
    write_text(directory / "table.tex", "\n".join(to_latex(table.text_table) for table in report.tables))
    write_text(directory / "table.csv", to_csv(firsts))
    for number, table in enumerate(firsts, start=1):
        save_figure(directory / ("table" if number == 1 else f"table_{number}"), results_figure(table))
    written = [f"table.{kind}" for kind in ("md", "tex", "csv", "png", "svg")]
    written += [f"table_{number}.png" for number in range(2, len(firsts) + 1)]
    print_line(console, f"{', '.join(written)} in {escape_control(directory)}")


def publish_sweep(directory: str | Path, console: Console) -> list[Run]:
    """Print and write the table of a finished sweep; return the jobs that are not complete."""
    report = make_report(find_runs([directory]))
    print_report(report, console)
    write_report(report, directory, console)
    return report.unfinished


def to_csv(tables: Sequence[ResultTable]) -> str:
    """A line for each group of runs and protocol; a group without any value has one line without values."""
    rows = []
    for table in tables:
        by_protocol = [
            ResultTable(table.pivot, protocol, table.metric, table.paper) for protocol in PROTOCOLS
        ]
        for position in table.pivot.positions:
            found = [(one, one.cells[position]) for one in by_protocol]
            scored = [(one, cell) for one, cell in found if cell.score]
            rows += [csv_row(one, cell) for one, cell in scored or found[:1]]
    return pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")


def csv_row(table: ResultTable, cell: TableCell) -> dict[str, object]:
    """Fractions in % with four decimals, other scores with six.

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
        "validation_metric": group.metric if group.validation else None,
        "validation": group.metric and unit_of(group.metric).precise(group.validation_score),
        "averaged": score and format_range(score.averaged or ()),
        "folds": len(group.results),
        "expected_folds": group.expected,
        "complete": str(group.complete).lower(),
        "seeds": " ".join(map(str, group.seeds)),
        "paper": score and cell.published and cell.published.mean,
        "difference": precise(cell.difference),
        "folder": ";".join(str(run.folder) for run in group.runs),
    }


def results_figure(table: ResultTable) -> Figure:
    """Means with 95 % confidence intervals: a panel per column of the table, a line and a colour per row."""
    pivot, unit = table.pivot, table.unit
    across = min(MAX_PANELS, len(pivot.columns))
    down = -(-len(pivot.columns) // across)
    labels = [pivot.row_label(row) for row in pivot.rows]
    names = 0.085 * max(map(len, labels))
    size = (max(6.0, 0.6 + names + 2.6 * across), 1.3 + down * (0.75 + 0.24 * len(labels)))
    figure = Figure(figsize=size, layout="constrained")
    title = f"{pivot.subject or 'All runs'}: test {table.metric}, protocol {table.protocol_label}"
    figure.suptitle("\n".join(textwrap.wrap(title, int(11 * size[0]))), fontsize=11)
    palette = colormaps["tab10" if len(labels) <= 10 else "tab20"]
    panels = figure.subplots(down, across, squeeze=False, sharey=True, sharex=pivot.column_key != "dataset")
    marks: dict[str, Line2D] = {}
    for axes, column, header in zip(panels.flat, pivot.columns, pivot.column_headers, strict=False):
        for y, row in enumerate(pivot.rows):
            cell = table.cells.get((row, column))
            if cell is None or cell.score is None:
                continue
            color, mean = palette(y % palette.N), unit.factor * cell.score.mean
            if bounds := cell.group.interval(cell.score):
                axes.plot(unit.factor * np.array(bounds), [y, y], color=color, alpha=0.6, linewidth=1.8)
            face = color if cell.group.complete else "white"
            axes.plot(mean, y, "o", color=color, markerfacecolor=face, markersize=6)
            if not cell.group.complete:
                hollow = Line2D([], [], color="black", marker="o", markerfacecolor="white", linestyle="")
                marks["folds are missing"] = hollow
            if cell.published:
                (marks["published"],) = axes.plot(cell.published.mean, y, "x", color="black", markersize=5)
        axes.set_title(header, fontsize=10)
        axes.set_yticks(range(len(labels)), labels, fontsize=9)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(alpha=0.3)
    panels[0, 0].set_ylim(len(labels) - 0.4, -0.6)
    for axes in list(panels.flat)[len(pivot.columns) :]:
        axes.set_visible(False)
    lines = "; lines: 95 % confidence intervals of the mean" if table.has_spread else ", one split"
    figure.supxlabel(f"test {table.metric}{unit.remark}{lines}", fontsize=9)
    if marks:
        figure.legend(marks.values(), marks, loc="outside lower right", fontsize=8, frameon=False)
    return figure
