"""The end of a sweep: one table of all its jobs, and those that failed by name and reason."""

from pathlib import Path

from rich.console import Console

from egin_dgl.reporting.many_runs.report import make_report, write_table
from egin_dgl.reporting.many_runs.terminal import print_report, say
from egin_dgl.runs.reading import Run, find_runs


def publish_sweep(folder: str | Path, console: Console) -> list[Run]:
    """Print the table of the runs below `folder` and write it there; return the jobs that are not complete."""
    report = make_report(find_runs([folder]))
    print_report(report, console)
    written = write_table(folder, report)
    if written:
        say(console, f"{', '.join(path.name for path in written)} in {folder}")
    return list(report.unfinished)
