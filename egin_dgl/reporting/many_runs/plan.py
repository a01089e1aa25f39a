"""`dry_run=true`: print the jobs of a run or sweep and the time left; nothing is started or written."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from egin_dgl.data.splits import fold_numbers
from egin_dgl.errors import escape_control
from egin_dgl.reporting.formatting import pluralize
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import RunSpec, Settings
from egin_dgl.runs.sweep_dir import SweepDir, SweepJob
from egin_dgl.terminal import make_console

HOUR, MINUTE = 3600, 60


@dataclass(frozen=True)
class PlannedJob:
    """A job and what its directory holds of it."""

    run: RunDir
    spec: RunSpec

    @cached_property
    def summary(self) -> dict | None:
        return self.run.load_finished(self.spec.settings)

    @cached_property
    def epochs_done(self) -> int:
        return sum(self.run.fold(number).epochs for number in folds(self.spec.settings))

    @property
    def fraction_left(self) -> float:
        epochs = len(folds(self.spec.settings)) * self.spec.settings["trainer"]["epochs"]
        return 0.0 if self.summary else max(0.0, 1 - self.epochs_done / epochs)

    @property
    def state(self) -> str:
        if self.summary:
            return f"finished in {format_seconds(self.summary['seconds'])}"
        if self.run.error.exists():
            return "failed"
        return f"{1 - self.fraction_left:.0%} trained" if self.epochs_done else "not started"

    @property
    def names(self) -> tuple[str, str]:
        """Model and dataset."""
        return self.spec.choices.get("model", ""), self.spec.choices.get("dataset", "")


def print_sweep(sweep: SweepDir, jobs: Iterable[SweepJob]) -> None:
    print_jobs([PlannedJob(sweep.run_dir(job), job.spec) for job in jobs], sweep.path)


def print_jobs(jobs: Sequence[PlannedJob], path: Path) -> None:
    """A line per job, then how many have finished and how long the others will take."""
    console = make_console()
    shared = set.intersection(*(set(job.spec.overrides) for job in jobs)) if len(jobs) > 1 else set()
    width = max(len(job.state) for job in jobs)
    for number, job in enumerate(jobs, start=1):
        overrides = " ".join(word for word in job.spec.overrides if word not in shared)
        line = f"{number:>{len(str(len(jobs)))}}  {job.state:<{width}}  {escape_control(overrides)}"
        console.print(line.rstrip(), soft_wrap=True, highlight=False)
    finished = sum(job.summary is not None for job in jobs)
    line = f"{pluralize(len(jobs), 'job')}, {finished} finished; {time_left(jobs)}; in"
    console.print(line, escape_control(path), soft_wrap=True, highlight=False)


def time_left(jobs: Sequence[PlannedJob]) -> str:
    unfinished = [job for job in jobs if not job.summary]
    if not unfinished:
        return "nothing is left"
    rates = [(job.names, job.summary["seconds"] / work(job.spec.settings)) for job in jobs if job.summary]
    if not rates:
        return "the time left is unknown until the first one has finished"
    seconds = sum(
        job.fraction_left * work(job.spec.settings) * estimate_rate(job.names, rates) for job in unfinished
    )
    return f"about {format_seconds(seconds)} left, estimated from those"


def work(settings: Settings) -> float:
    """Graphs × epochs × folds × candidates of a grid; one graph where their number is not in the settings."""
    grid, expect = settings["cv"].get("grid") or {}, settings["dataset"].get("expect") or {}
    sizes = [len(values) for group in grid.values() for values in group.values()]
    epochs = len(folds(settings)) * settings["trainer"]["epochs"]
    return (expect.get("graphs") or 1) * epochs * math.prod(sizes)


def folds(settings: Settings) -> list[int]:
    cv = settings["cv"]
    if (fold := cv.get("fold")) is not None:
        return fold_numbers(fold)
    return list(range(cv.get("k", 1) * cv.get("repeats", 1)))


def estimate_rate(names: tuple[str, str], rates: Sequence[tuple[tuple[str, str], float]]) -> float:
    """Seconds per unit of work: the median of jobs of the same model and dataset, or of the model, or of any."""
    same = [rate for found, rate in rates if found == names]
    same_model = [rate for found, rate in rates if found[0] == names[0]]
    return statistics.median(same or same_model or [rate for _, rate in rates])


def format_seconds(seconds: float) -> str:
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    minutes = round(seconds / MINUTE)
    return f"{minutes} min" if seconds < HOUR else f"{minutes // 60} h {minutes % 60} min"
