"""Tables of words on the terminal, as Markdown and as LaTeX: all three from the same sheet, so that they say the same."""

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
    """A word that stands out."""


@dataclass(frozen=True)
class Sheet:
    title: str
    lines: list[list[str]]  # the header first
    names: int  # the first so many columns hold names; numbers stand to the right
    notes: list[str]
    bullet: str = "- "  # of a note, in Markdown

    def grid(self, write: Callable[[str], str], bold: str) -> list[list[str]]:
        """The lines in some notation, and with its way to make a word bold."""
        return [
            [bold.format(write(word)) if isinstance(word, Bold) else write(word) for word in line]
            for line in self.lines
        ]


def markdown(sheet: Sheet) -> str:
    header, *lines = sheet.grid(lambda word: word.replace("|", "\\|"), "**{}**")
    rule = ["---"] * sheet.names + ["---:"] * (len(header) - sheet.names)
    table = "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *lines))
    notes = "".join(f"{sheet.bullet}{note}\n" for note in sheet.notes)
    return f"### {sheet.title}\n\n{table}\n{notes}"


def latex(sheet: Sheet) -> str:
    """For `\\usepackage{booktabs}`. The signs are our own: pandas would not know ± and ε."""
    header, *lines = sheet.grid(tex, r"\textbf{{{}}}")
    columns = "l" * sheet.names + "r" * (len(header) - sheet.names)
    table = pd.DataFrame(lines, columns=header).to_latex(index=False, escape=False, column_format=columns)
    start = f"\\begin{{table}}\n\\centering\\small\n\\caption{{{tex(sheet.title)}}}\n"
    return f"{start}{table}\\par\\smallskip\\footnotesize\n{tex(' '.join(sheet.notes))}\n\\end{{table}}\n"


def tex(text: str) -> str:
    return text.translate(TEX)


def print_sheet(sheet: Sheet, console: Console) -> None:
    """A table wider than the terminal goes on below, its rows named again: nothing is cut."""
    say(console, sheet.title, style="italic")
    # A file or a pipe has no bold.
    header, *lines = sheet.grid(escape, "[bold]{}[/bold]" if console.is_terminal else "**{}**")
    start = sheet.names
    while start < len(header):
        for end in range(len(header), start, -1):
            shown = [*range(sheet.names), *range(start, end)]
            table = Table()
            for at in shown:
                table.add_column(header[at], justify="left" if at < sheet.names else "right", no_wrap=True)
            for line in lines:
                table.add_row(*(line[at] for at in shown))
            unbound = console.options.update(max_width=10_000)
            width = table.__rich_measure__(console, unbound).maximum
            if width <= console.width:
                break
        # Names alone can be wider than the terminal. rich would cut them; a wider console leaves the lines whole.
        before, console.width = console.width, max(width, console.width)
        console.print(table, crop=False, no_wrap=True)
        console.width, start = before, end
    for note in sheet.notes:
        say(console, note)


def say(console: Console, text: str, style: str | None = None) -> None:
    """A line as it is: long ones are the terminal's to break, so that a copy of them is whole."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
