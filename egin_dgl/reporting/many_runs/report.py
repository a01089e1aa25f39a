"""The report on a set of runs: tables, ranks, comparisons and incomplete jobs, printed and written to files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from egin_dgl.errors import ConfigError, escape_control
from egin_dgl.evaluation.metrics import MAIN
from egin_dgl.files import atomic_path, write_text
from egin_dgl.reporting.many_runs.comparison import compare_models, comparison_table, rank_rows
from egin_dgl.reporting.many_runs.csv_table import to_csv
from egin_dgl.reporting.many_runs.figure import results_figure
from egin_dgl.reporting.many_runs.renderers import TextTable, print_line, print_table, to_latex, to_markdown
from egin_dgl.reporting.many_runs.table import ResultTable, result_tables
from egin_dgl.runs.reader import Run, find_runs


@dataclass(frozen=True)
class Report:
    tables: list[ResultTable]  # one per protocol; none if no fold of any run is finished
    text_tables: list[TextTable]  # of results, ranks and comparisons
    unfinished: list[Run]


def make_report(
    runs: Sequence[Run],
    protocol: str | None = None,
    metric: str = MAIN.name,
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
    texts += [ranks.text_table for table in tables if (ranks := rank_rows(table))]
    if compared and not tables:
        raise ConfigError(f"no fold of any run is finished: {' and '.join(compared)} cannot be compared")
    if compared:
        texts += [comparison_table(compare_models(t.pivot, *compared, t.protocol, metric)) for t in tables]
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


def write_report(report: Report, folder: str | Path, console: Console) -> None:
    """Write table.md, table.tex, table.csv (all protocols) and table.png (the first table); nothing without a table."""
    if not report.tables:
        return
    sections = [to_markdown(table) for table in report.text_tables]
    if report.unfinished:
        jobs = "".join(f"- `{run.name}`: {run.reason}\n" for run in report.unfinished)
        sections.append(f"### Not complete\n\n{jobs}")
    folder, first = Path(folder), report.tables[0]
    write_text(folder / "table.md", "\n".join(sections))
    write_text(folder / "table.tex", "\n".join(to_latex(table.text_table) for table in report.tables))
    write_text(folder / "table.csv", to_csv(first))
    with atomic_path(folder / "table.png") as temporary:
        results_figure(first).savefig(temporary, format="png", dpi=120)
    print_line(console, f"table.md, table.tex, table.csv, table.png in {escape_control(folder)}")


def publish_sweep(folder: str | Path, console: Console) -> list[Run]:
    """Print and write the table of a finished sweep; return the jobs that are not complete."""
    report = make_report(find_runs([folder]))
    print_report(report, console)
    write_report(report, folder, console)
    return report.unfinished
