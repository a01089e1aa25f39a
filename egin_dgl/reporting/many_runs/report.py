"""All that a set of runs comes to: tables, ranks, comparisons, and the jobs that are not complete; printed and written."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import MAIN
from egin_dgl.files import atomic_path, write_text
from egin_dgl.reporting.many_runs.comparison import compare_models, comparison_sheet, rank
from egin_dgl.reporting.many_runs.csv_table import long_csv
from egin_dgl.reporting.many_runs.figure import results_figure
from egin_dgl.reporting.many_runs.renderers import Sheet, latex, markdown, print_sheet, say
from egin_dgl.reporting.many_runs.table import ResultTable, result_tables
from egin_dgl.runs.reader import Run, find_runs
from egin_dgl.text import escape_control


@dataclass(frozen=True)
class Report:
    tables: list[ResultTable]  # one a protocol; none where no fold of any run is finished
    sheets: list[Sheet]  # these, ranks, and comparisons if they were asked for, as they are shown
    unfinished: list[Run]


def make_report(
    runs: Sequence[Run],
    protocol: str | None = None,
    metric: str = MAIN.name,
    paper: bool = False,
    compared: tuple[str, str] | None = None,
) -> Report:
    """`protocol` None is the runs' own, "all" makes a table of each; `compared` are two names of models."""
    tables = result_tables(runs, protocol, metric, paper)
    sheets = [table.sheet for table in tables]
    sheets += [ranks.sheet for table in tables if (ranks := rank(table))]
    if compared and not tables:
        raise ConfigError(f"no fold of any run is finished: {' and '.join(compared)} cannot be compared")
    if compared:
        sheets += [comparison_sheet(compare_models(t.layout, *compared, t.protocol, metric)) for t in tables]
    return Report(tables, sheets, [run for run in runs if not run.complete])


def print_report(report: Report, console: Console) -> None:
    for number, sheet in enumerate(report.sheets):
        if number:
            console.print()
        print_sheet(sheet, console)
    if report.unfinished:
        if report.tables:
            console.print()
        jobs = "1 job is" if len(report.unfinished) == 1 else f"{len(report.unfinished)} jobs are"
        say(console, f"{jobs} not complete:")
        for run in report.unfinished:
            say(console, f"  {run.name}: {run.reason}")


def write_report(report: Report, folder: str | Path, console: Console) -> None:
    """Write table.md, table.tex, table.csv (all protocols) and table.png (the first table), and say so; nothing without a table."""
    if not report.tables:
        return
    parts = [markdown(sheet) for sheet in report.sheets]
    if report.unfinished:
        jobs = "".join(f"- `{run.name}`: {run.reason}\n" for run in report.unfinished)
        parts.append(f"### Not complete\n\n{jobs}")
    folder, first = Path(folder), report.tables[0]
    write_text(folder / "table.md", "\n".join(parts))
    write_text(folder / "table.tex", "\n".join(latex(table.sheet) for table in report.tables))
    write_text(folder / "table.csv", long_csv(first))
    with atomic_path(folder / "table.png") as temporary:
        results_figure(first).savefig(temporary, format="png", dpi=120)
    say(console, f"table.md, table.tex, table.csv, table.png in {escape_control(folder)}")


def publish_sweep(folder: str | Path, console: Console) -> list[Run]:
    """The end of a sweep: print the table of its jobs and write it there; return those that are not complete."""
    report = make_report(find_runs([folder]))
    print_report(report, console)
    write_report(report, folder, console)
    return report.unfinished
