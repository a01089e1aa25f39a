"""A table of results, one metric by one protocol: what stands in each cell, and what a reader must know to read it right."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import MAIN, METRICS
from egin_dgl.evaluation.protocols import PROTOCOLS, ProtocolResult, headline
from egin_dgl.reporting.formatting import CHOSEN, Unit, counted, marked, span, unit_of
from egin_dgl.reporting.many_runs.paper import PUBLISHED, SOURCE, Published
from egin_dgl.reporting.many_runs.pivot import Layout, Place, brief, lay_out
from egin_dgl.reporting.many_runs.renderers import Bold, Sheet
from egin_dgl.reporting.many_runs.run_groups import ABSENT, Cell, join
from egin_dgl.runs.reader import Run

BOLD = "Bold: the best of the complete cells of a dataset."
MISSING = "[n/m folds]: folds are missing, so that the value is left out of bold, ranks and comparisons."
PAPER = f"In brackets the published mean and the difference in points ({SOURCE}). The paper's protocol has no validation part: common_epoch of cv=paper is nearest to it."


@dataclass(frozen=True)
class Entry:
    """A cell as one table shows it."""

    cell: Cell
    score: ProtocolResult | None
    unit: Unit
    published: Published | None = None
    best: bool = False  # of the complete cells of its dataset

    @property
    def rival(self) -> float:
        """What it is compared with others by: the mean as printed; NaN where folds are missing."""
        return self.unit.rounded(self.score.mean) if self.score and self.cell.complete else math.nan

    @property
    def difference(self) -> float | None:
        """From the published score, as a fraction."""
        if self.score is None or self.published is None or not self.cell.complete:
            return None
        return self.score.mean - self.published.mean / 100

    @property
    def text(self) -> str:
        if self.score is None:
            return ABSENT if self.cell.complete else self.cell.state
        text = self.unit.text(self.score.mean)
        if len(self.score.per_fold) > 1:
            text = self.unit.spread(self.score.mean, self.score.std)
        if not self.cell.complete:
            text += f" [{self.cell.state}]"
        if self.published:
            beside = "" if self.difference is None else f", {self.unit.signed(self.difference)}"
            text += f" ({self.published.mean:.1f}{beside})"
        return text


@dataclass(frozen=True)
class ResultTable:
    layout: Layout
    protocol: str
    metric: str
    paper: bool

    @property
    def unit(self) -> Unit:
        return unit_of(self.metric)

    @cached_property
    def entries(self) -> dict[Place, Entry]:
        published = PUBLISHED if self.paper else {}
        entries: dict[Place, Entry] = {}
        rivals: dict[str, list[float]] = {}
        for place, cell in self.layout.places.items():
            score, beside = cell.score(self.protocol, self.metric), published.get((cell.model, cell.dataset))
            entries[place] = Entry(cell, score, self.unit, beside)
            if not math.isnan(entries[place].rival):
                rivals.setdefault(cell.dataset, []).append(entries[place].rival)
        best = {name: METRICS[self.metric].best(means) for name, means in rivals.items() if len(means) > 1}
        return {at: replace(one, best=one.rival == best.get(one.cell.dataset)) for at, one in entries.items()}

    @property
    def protocol_label(self) -> str:
        scores = [entry.score for entry in self.entries.values()]
        return marked(self.protocol, any(score.optimistic for score in scores if score))

    @property
    def title(self) -> str:
        subject = f"{self.layout.subject}: " if self.layout.subject else ""
        over = "mean ± std over folds" if self.has_spread else "one split"
        return f"{subject}test {self.metric}{self.unit.remark}, {over}, protocol {self.protocol_label}"

    @property
    def has_spread(self) -> bool:
        """Whether any value is a mean of several folds."""
        return any(len(entry.score.per_fold) > 1 for entry in self.entries.values() if entry.score)

    @property
    def sheet(self) -> Sheet:
        layout = self.layout
        lines = [[*layout.row_headers, *layout.column_headers]]
        for row in layout.rows:
            entries = [self.entries.get((row, column)) for column in layout.columns]
            texts = [(Bold if entry.best else str)(entry.text) if entry else "" for entry in entries]
            lines.append([*map(brief, row), *texts])
        return Sheet(self.title, lines, len(layout.row_keys), self.notes)

    @cached_property
    def notes(self) -> list[str]:
        """What a reader must know: sentences, each where there is a reason for it."""
        layout, entries = self.layout, self.entries.values()
        scored = [(entry.cell, entry.score) for entry in entries if entry.score]
        kernels = {cell.is_kernel for cell, _ in scored}
        chosen = "C" if kernels == {True} else "the epoch"
        chosen += " (of a kernel machine C)" if len(kernels) > 1 else ""
        averaged = [number for _, score in scored for number in score.averaged or ()]
        how = CHOSEN[self.protocol][0].format(averaged=span(averaged))
        absent = [entry.cell for entry in entries if entry.cell.complete and entry.score is None]
        others = sorted({headline(c.protocols) for c in absent if not c.protocols[self.protocol]})
        unclear = METRICS[self.metric].is_loss and any(cell.is_kernel for cell in absent)
        undefined = sum(len(cell.results) - len(score.per_fold) for cell, score in scored)
        seeds = [len(cell.seeds) for cell in layout.cells]
        repeated = sum(cell.repeated for cell in layout.cells)
        names = ", ".join(map(layout.short, layout.keys))
        reasons = {
            f"{self.protocol}: {chosen} was chosen {how}.": True,
            BOLD: any(entry.best for entry in entries),
            MISSING: not all(cell.complete for cell, _ in scored),
            f"{ABSENT}: these runs have no {self.metric} by {self.protocol}; their own protocol: {', '.join(others)}.": others,
            f"{ABSENT}: the decision values of a kernel machine are no probabilities and have no {self.metric}.": unclear,
            f"{self.metric} is not defined on {counted(undefined, 'test part')}, left out of the means.": undefined,
            PAPER: self.paper,
            f"The folds of {span(seeds)} seeds are pooled.": max(seeds) > 1,
            f"{counted(repeated, 'fold')} {'was' if repeated == 1 else 'were'} run more than once: only the newest counts.": repeated,
            f"Not the same in every cell: {'; '.join(layout.differing)}.": layout.differing,
            f"To choose {names} by this table is to choose on the test parts.": layout.keys,
        }
        return [note for note, holds in reasons.items() if holds] + (self.preferences if layout.keys else [])

    @property
    def preferences(self) -> list[str]:
        """Which setting of each model the validation parts prefer, with what it gives on the test parts."""
        rivals: dict[tuple[str, str, str], list[tuple[float, Entry]]] = {}
        for entry in self.entries.values():
            cell, score = entry.cell, entry.cell.validation_score
            if score is not None and not math.isnan(entry.rival):
                metric = cell.value("trainer.monitor")  # scores of different metrics do not compare
                rivals.setdefault((cell.model, cell.dataset, metric), []).append((score, entry))
        lines = []
        for (model, dataset, metric), found in rivals.items():
            score, best = max(found, key=lambda pair: pair[0])
            equal = sum(other == score for other, _ in found)
            first = f", the first of {equal} equals" if equal > 1 else ""
            preferred = f"{self.layout.setting(best.cell)} (validation {metric} {100 * score:.1f}{first})"
            test = f"test {best.text} by {self.protocol_label}"
            if len(found) > 1:
                lines.append(f"{model} on {dataset}: validation prefers {preferred}, {test}.")
        return lines


def result_tables(
    runs: Sequence[Run], protocol: str | None = None, metric: str = MAIN.name, paper: bool = False
) -> list[ResultTable]:
    """One table, or with protocol "all" one for each protocol that any run has; none where no fold is finished."""
    if metric not in METRICS:
        raise ConfigError(f"there is no metric {metric!r}; valid: {', '.join(METRICS)}")
    if protocol not in (None, "all", *PROTOCOLS):
        raise ConfigError(f"there is no protocol {protocol!r}; valid: {', '.join(PROTOCOLS)}, all")
    if paper and metric != MAIN.name:
        raise ConfigError("the paper has accuracies only: leave out --paper or --metric")
    cells = join(runs)
    present = [name for name in PROTOCOLS if any(cell.protocols.get(name) for cell in cells)]
    if not present:
        return []
    if protocol not in (None, "all", *present):
        raise ConfigError(f"no run has the protocol {protocol}; there are: {', '.join(present)}")
    own = "selected" if "selected" in present else "common_epoch"
    wanted = present if protocol == "all" else [protocol or own]
    layout = lay_out(cells)
    return [ResultTable(layout, name, metric, paper) for name in wanted]
