"""A report on the terminal. A table wider than the terminal goes on below, its rows named again: nothing is cut."""

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from egin_dgl.reporting.many_runs.writing import comparison_lines, comparison_title, grid, rank_lines
from egin_dgl.reporting.many_runs.report import Report


def print_report(report: Report, console: Console) -> None:
    for index, table in enumerate(report.tables):
        say(console, table.title, style="italic")
        # A file or a pipe has no bold.
        bold = "[bold]{}[/bold]" if console.is_terminal else "**{}**"
        lines = grid(table, escape, bold.format)
        print_lines(console, lines, len(table.layout.row_keys))
        for note in table.notes:
            say(console, note)
        if index + 1 < len(report.tables):
            console.print()
    for ranks in report.ranks:
        console.print()
        say(console, ranks.title, style="italic")
        print_lines(console, [[escape(word) for word in line] for line in rank_lines(ranks)], 1)
        say(console, ranks.note)
    for comparison in report.comparisons:
        console.print()
        say(console, comparison_title(comparison), style="italic")
        print_lines(console, [[escape(word) for word in line] for line in comparison_lines(comparison)], 1)
        for one in comparison:
            say(console, one.sentence)
    print_unfinished(report, console)


def print_unfinished(report: Report, console: Console) -> None:
    if not report.unfinished:
        return
    if report.tables:
        console.print()
    jobs = "1 job is" if len(report.unfinished) == 1 else f"{len(report.unfinished)} jobs are"
    say(console, f"{jobs} not complete:")
    for run in report.unfinished:
        say(console, f"  {run.name}: {run.reason}")


def say(console: Console, text: str, style: str | None = None) -> None:
    """A line as it is: long ones are the terminal's to break, so that a copy of them is whole."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_lines(console: Console, lines: Sequence[Sequence[str]], names: int) -> None:
    for table in blocks(console, lines, names):
        # Names alone can be wider than the terminal. rich would cut them; a wider console leaves the lines whole.
        before, console.width = console.width, max(natural_width(console, table), console.width)
        console.print(table, crop=False, no_wrap=True)
        console.width = before


def blocks(console: Console, lines: Sequence[Sequence[str]], names: int) -> Iterator[RenderableType]:
    """The table in as many parts as its width needs, each with at least one column beside the names."""
    start = names
    while start < len(lines[0]):
        end = len(lines[0])
        while end > start + 1 and natural_width(console, make(lines, names, start, end)) > console.width:
            end -= 1
        yield make(lines, names, start, end)
        start = end


def natural_width(console: Console, table: Table) -> int:
    return table.__rich_measure__(console, console.options.update(max_width=10_000)).maximum


def make(lines: Sequence[Sequence[str]], names: int, start: int, end: int) -> Table:
    table = Table()
    for index in (*range(names), *range(start, end)):
        table.add_column(lines[0][index], justify="left" if index < names else "right", no_wrap=True)
    for line in lines[1:]:
        table.add_row(*line[:names], *line[start:end])
    return table
