"""The console of the terminal: text from data and files is printed as it is, without rich's markup and emoji codes."""

from rich.console import Console


def make_console(stderr: bool = False) -> Console:
    return Console(stderr=stderr, markup=False, emoji=False)
