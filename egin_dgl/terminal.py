"""The console of the terminal: text from data and files is printed as it is, without rich's markup and emoji codes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import progress
from rich.console import Console


def make_console(stderr: bool = False) -> Console:
    return Console(stderr=stderr, markup=False, emoji=False)


@contextmanager
def progress_bar(text: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal's stderr, nothing elsewhere; it yields a function that takes how much is done.

    `total` None, if unknown, shows what is done alone.
    """
    console = make_console(stderr=True)
    parts = [progress.TextColumn("{task.description}"), progress.MofNCompleteColumn()]
    if total is not None:
        parts[1:1] = [progress.BarColumn(20)]
        parts.append(progress.TimeRemainingColumn())
    with progress.Progress(*parts, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(text, total=total)
        yield lambda done: bar.update(task, completed=done)
