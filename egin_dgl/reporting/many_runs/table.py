"""A table of results: one metric by one protocol, with notes on how to read it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.evaluation.protocols import PROTOCOLS, headline
from egin_dgl.reporting.formatting import (
    EPOCH_CHOICE,
    Unit,
    format_range,
    pluralize,
    protocol_label,
    unit_of,
)
from egin_dgl.reporting.many_runs.paper import PUBLISHED, SOURCE
from egin_dgl.reporting.many_runs.pivot import Pivot, Position, pivot_groups, shorten
from egin_dgl.reporting.many_runs.renderers import Bold, TextTable
from egin_dgl.reporting.many_runs.run_groups import ABSENT, RunGroup, group_runs, number_test_sets
from egin_dgl.reporting.many_runs.table_cell import TableCell
from egin_dgl.runs.reader import Run
from egin_dgl.tasks import Task

BOLD = "Bold: best test score of a dataset; do not select by it."
MISSING = "[n/m folds]: folds are missing; the value is not bold, ranked or compared."
PAPER = (
    f"In brackets: the published mean and the difference in points ({SOURCE}). The paper has no validation set: "
    "its protocol is closest to common_epoch of cv=paper."
)


@dataclass(frozen=True)
class ResultTable:
    """One metric by one protocol for the groups of a pivot."""

    pivot: Pivot
    protocol: str
    metric: str
    paper: bool  # whether to show published numbers
    left_out: tuple[str, ...] = ()  # "MODEL on DATASET" of runs whose task does not have the metric

    @property
    def unit(self) -> Unit:
        return unit_of(self.metric)

    @cached_property
    def cells(self) -> dict[Position, TableCell]:
        cells: dict[Position, TableCell] = {}
        means: dict[tuple[str, int], list[float]] = {}
        numbers = number_test_sets(self.pivot.groups)
        for (position, group), number in zip(self.pivot.positions.items(), numbers, strict=True):
            published = PUBLISHED.get((group.model, group.dataset)) if self.paper else None
            score = group.score(self.protocol, self.metric)
            cells[position] = cell = TableCell(group, score, self.unit, published, number)
            if not math.isnan(cell.comparable):
                means.setdefault(cell.task, []).append(cell.comparable)
        best = {task: METRICS[self.metric].best(found) for task, found in means.items() if len(found) > 1}
        return {
            position: replace(cell, best=cell.comparable == best.get(cell.task))
            for position, cell in cells.items()
        }

    @property
    def different_tests(self) -> str | None:
        """A sentence on different test sets of one dataset, with the settings in which they differ; None if there are none."""
        tasks = {cell.task for cell in self.cells.values()}
        if len(tasks) == len({dataset for dataset, _ in tasks}):
            return None
        cells = self.cells.values()
        found = {key: {(cell.group.value(key), *cell.task) for cell in cells} for key in self.pivot.keys}
        deciding = [key for key, kinds in found.items() if len(kinds) == len(tasks)]
        names = f" by {', '.join(map(self.pivot.short_name, deciding))}" if deciding else ""
        return f"Test sets differ{names}: scores are compared within the same test sets only."

    @property
    def protocol_label(self) -> str:
        scores = [cell.score for cell in self.cells.values()]
        return protocol_label(self.protocol, any(score.optimistic for score in scores if score))

    @property
    def has_spread(self) -> bool:
        """Whether any value is a mean of several folds."""
        return any(len(cell.score.per_fold) > 1 for cell in self.cells.values() if cell.score)

    @property
    def title(self) -> str:
        subject = f"{self.pivot.subject}: " if self.pivot.subject else ""
        over = "mean ± std over folds" if self.has_spread else "one split"
        return f"{subject}test {self.metric}{self.unit.remark}, {over}, protocol {self.protocol_label}"

    @property
    def text_table(self) -> TextTable:
        pivot = self.pivot
        lines = [[*pivot.row_headers, *pivot.column_headers]]
        for row in pivot.rows:
            cells = [self.cells.get((row, column)) for column in pivot.columns]
            texts = [(Bold if cell.best else str)(cell.text) if cell else "" for cell in cells]
            lines.append([*map(shorten, row), *texts])
        return TextTable(self.title, lines, len(pivot.row_keys), self.notes)

    @cached_property
    def notes(self) -> list[str]:
        """Sentences that a reader needs, each only where it applies."""
        pivot, cells = self.pivot, self.cells.values()
        scored = [(cell.group, cell.score) for cell in cells if cell.score]
        kernels = {group.is_kernel for group, _ in scored}
        chosen = "C" if kernels == {True} else "the epoch"
        chosen += " (C of a kernel machine)" if len(kernels) > 1 else ""
        averaged = [number for _, score in scored for number in score.averaged or ()]
        how = EPOCH_CHOICE[self.protocol][0].format(averaged=format_range(averaged))
        absent = [cell.group for cell in cells if cell.group.complete and cell.score is None]
        others = sorted({headline(group.protocols) for group in absent if not group.protocols[self.protocol]})
        no_losses = METRICS[self.metric].needs_probabilities and any(group.is_kernel for group in absent)
        undefined = sum(len(group.results) - len(score.per_fold) for group, score in scored)
        seeds = [len(group.seeds) for group in pivot.groups]
        repeated = sum(group.repeated for group in pivot.groups)
        names = ", ".join(map(pivot.short_name, pivot.keys))
        conditions = {
            f"{self.protocol}: {chosen} is chosen {how}.": True,
            BOLD: any(cell.best for cell in cells),
            MISSING: not all(group.complete for group, _ in scored),
            f"{ABSENT}: no {self.metric} by {self.protocol}; these runs have {', '.join(others)}.": others,
            f"{ABSENT}: decision values of a kernel machine are no probabilities and have no {self.metric}.": no_losses,
            f"{self.metric} is undefined on {pluralize(undefined, 'test set')}, which the means leave out.": undefined,
            f"Left out, as their task has no {self.metric}: {', '.join(self.left_out)}.": self.left_out,
            PAPER: self.paper,
            f"The folds of {format_range(seeds)} seeds are pooled.": max(seeds) > 1,
            f"{pluralize(repeated, 'fold')} ran more than once: the newest result counts.": repeated,
            f"Settings that differ: {'; '.join(pivot.differing)}.": pivot.differing,
            self.different_tests or "": self.different_tests,
            f"Do not select {names} by this table: it shows test scores.": pivot.keys,
        }
        return [note for note, holds in conditions.items() if holds] + (self.selections if pivot.keys else [])

    @property
    def selections(self) -> list[str]:
        """The setting of each model that validation selects, and its test score."""
        candidates: dict[tuple[str, tuple[str, int], str], list[tuple[float, TableCell]]] = {}
        for cell in self.cells.values():
            group, score = cell.group, cell.group.validation_score
            if score is not None and not math.isnan(cell.comparable):
                key = (
                    group.model,
                    cell.task,
                    str(group.metric),
                )  # scores of different metrics are not comparable
                candidates.setdefault(key, []).append((score, cell))
        lines = []
        for (model, (dataset, _), metric), found in candidates.items():
            score, best = max(found, key=lambda pair: METRICS[metric].gain(pair[0]))
            equal = sum(other == score for other, _ in found)
            tie = f", the first of {equal} equal ones" if equal > 1 else ""
            selected = (
                f"{self.pivot.setting(best.group)} (validation {metric} {unit_of(metric).text(score)}{tie})"
            )
            test = f"test {best.text} by {self.protocol_label}"
            if len(found) > 1:
                lines.append(f"{model} on {dataset}: validation selects {selected}, {test}.")
        return lines


def result_tables(
    runs: Sequence[Run], protocol: str | None = None, metric: str | None = None, paper: bool = False
) -> list[ResultTable]:
    """One table for each task of the runs; none if no fold is finished.

    Without `metric` it shows the metric that all runs of the task monitored, or if they differ the main metric of the task.
    Runs of a task without the metric are left out. With protocol "all" there is a table for each protocol that any run has.
    """
    if metric not in (None, *METRICS):
        raise ConfigError(f"no metric {metric!r}; valid: {', '.join(METRICS)}")
    if protocol not in (None, "all", *PROTOCOLS):
        raise ConfigError(f"no protocol {protocol!r}; valid: {', '.join(PROTOCOLS)}, all")
    if paper and metric not in (None, "accuracy"):
        raise ConfigError("the paper has accuracies only: leave out --paper or --metric")
    groups = group_runs(runs)
    present = [name for name in PROTOCOLS if any(group.protocols.get(name) for group in groups)]
    if not present:
        return []
    if protocol not in (None, "all", *present):
        raise ConfigError(f"no run has the protocol {protocol}; valid here: {', '.join(present)}")
    default = "selected" if "selected" in present else "common_epoch"
    chosen = present if protocol == "all" else [protocol or default]
    by_task = split_by_task(groups)
    absent = [
        group for task, own in by_task.items() if metric and metric not in task.metrics for group in own
    ]
    left_out = tuple(dict.fromkeys(f"{group.model} on {group.dataset}" for group in absent))
    tables = []
    for task, own in by_task.items():
        monitored = {group.metric for group in own if group.metric}
        name = metric or (monitored.pop() if len(monitored) == 1 else task.main().name)
        if name in task.metrics:
            pivot = pivot_groups(own)
            tables += [ResultTable(pivot, one, name, paper, left_out) for one in chosen]
    if not tables:
        valid = dict.fromkeys(name for task in by_task for name in task.metrics)
        raise ConfigError(f"no run has the metric {metric}; valid here: {', '.join(valid)}")
    return tables


def split_by_task(groups: Sequence[RunGroup]) -> dict[type[Task], list[RunGroup]]:
    """Groups by task; one without a finished fold is with its dataset, or else with the first."""
    known = {group.dataset: group.task for group in groups if group.task}
    found: dict[type[Task], list[RunGroup]] = {}
    for group in groups:
        task = group.task or known.get(group.dataset, next(iter(known.values())))
        found.setdefault(task, []).append(group)
    return found
