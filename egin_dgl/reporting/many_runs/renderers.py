"""Text tables on the terminal, in Markdown and in LaTeX."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

TEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
    | {"±": r"$\pm$", "−": "$-$", "×": r"$\times$", "ε": r"$\epsilon$", "<": "$<$", ">": "$>$"}
)


class Bold(str):
    """A text in bold."""


@dataclass(frozen=True)
class TextTable:
    """A table of texts with notes below it."""

    title: str
    lines: list[list[str]]  # the header first
    num_headers: int  # the first columns hold names and are left-aligned, the others numbers
    notes: list[str]
    bullet: str = "- "  # before a note in Markdown

    def format_lines(self, write: Callable[[str], str], bold: str) -> list[list[str]]:
        """Lines with every text escaped by `write`, bold ones in the format `bold`."""

        def write_cell(text: str) -> str:
            return bold.format(write(text)) if isinstance(text, Bold) else write(text)

        return [list(map(write_cell, line)) for line in self.lines]


def to_markdown(table: TextTable) -> str:
    header, *lines = table.format_lines(lambda text: text.replace("|", "\\|"), "**{}**")
    rule = ["---"] * table.num_headers + ["---:"] * (len(header) - table.num_headers)
    rows = "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *lines))
    notes = "".join(f"{table.bullet}{note}\n" for note in table.notes)
    return f"### {table.title}\n\n{rows}\n{notes}"


def to_latex(table: TextTable) -> str:
    """For `\\usepackage{booktabs}`; pandas' own escaping would leave ± and ε."""
    header, *lines = table.format_lines(escape_tex, r"\textbf{{{}}}")
    columns = "l" * table.num_headers + "r" * (len(header) - table.num_headers)
    rows = pd.DataFrame(lines, columns=header).to_latex(index=False, escape=False, column_format=columns)
    start = f"\\begin{{table}}\n\\centering\\small\n\\caption{{{escape_tex(table.title)}}}\n"
    notes = escape_tex(" ".join(table.notes))
    return f"{start}{rows}\\par\\smallskip\\footnotesize\n{notes}\n\\end{{table}}\n"


def escape_tex(text: str) -> str:
    return text.translate(TEX)


def print_table(table: TextTable, console: Console) -> None:
    """Print a table; one wider than the terminal is printed in blocks of columns, with its row names repeated."""
    print_line(console, table.title, style="italic")
    # A file or a pipe shows no bold.
    header, *lines = table.format_lines(escape, "[bold]{}[/bold]" if console.is_terminal else "**{}**")
    start, names, end_of_table = table.num_headers, range(table.num_headers), len(header)
    while start < end_of_table:
        for end in range(end_of_table, start, -1):
            columns = [*names, *range(start, end)]
            block = Table()
            for i in columns:
                block.add_column(header[i], justify="left" if i in names else "right", no_wrap=True)
            for line in lines:
                block.add_row(*(line[i] for i in columns))
            width = console.measure(block, options=console.options.update(max_width=10_000)).maximum
            if width <= console.width:
                break
        # A single column may still be wider than the terminal, which rich would crop.
        terminal_width, console.width = console.width, max(width, console.width)
        console.print(block, crop=False, no_wrap=True)
        console.width, start = terminal_width, end
    for note in table.notes:
        print_line(console, note)


def print_line(console: Console, text: str, style: str | None = None) -> None:
    """Print a line as it is; the terminal breaks long ones, so that they can be copied whole."""
    console.print(text, style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)
