"""A table of results as data and words, before it is Markdown, LaTeX, CSV, a picture or lines on a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import MAIN, METRICS
from egin_dgl.evaluation.protocols import PROTOCOLS, ProtocolResult
from egin_dgl.reporting.many_runs.cells import Cell, join
from egin_dgl.reporting.many_runs.layout import ABSENT, Layout, lay_out, short, value
from egin_dgl.reporting.many_runs.paper import PUBLISHED, SOURCE, Published
from egin_dgl.reporting.units import PERCENT, Unit, unit_of
from egin_dgl.reporting.wording import CHOSEN, span
from egin_dgl.runs.reading import Run


@dataclass(frozen=True)
class Entry:
    """A cell as one table shows it."""

    cell: Cell
    score: ProtocolResult | None
    published: Published | None = None
    best: bool = False  # of the complete cells of its dataset
    unit: Unit = PERCENT

    @property
    def counts(self) -> bool:
        """Whether it may be compared with others."""
        return self.score is not None and self.cell.complete

    @property
    def difference(self) -> float | None:
        """From the published accuracy, as a fraction."""
        return self.score.mean - self.published.mean / 100 if self.counts and self.published else None

    @property
    def text(self) -> str:
        if self.score is None:
            return self.cell.state if not self.cell.complete else ABSENT
        mean, std = self.score.mean, self.score.std
        text = self.unit.spread(mean, std) if len(self.score.per_fold) > 1 else self.unit.text(mean)
        if not self.cell.complete:
            text += f" [{self.cell.state}]"
        if self.published:
            beside = [f"{self.published.mean:.1f}"]
            beside += [self.unit.signed(self.difference)] if self.difference is not None else []
            text += f" ({', '.join(beside)})"
        return text


@dataclass(frozen=True)
class ResultTable:
    """One metric by one protocol, laid out in rows and columns."""

    layout: Layout
    protocol: str
    metric: str
    paper: bool

    @property
    def unit(self) -> Unit:
        return unit_of(self.metric)

    @cached_property
    def entries(self) -> dict[tuple[tuple[str, ...], str], Entry]:
        """By row and column."""
        scores = {
            place: self.layout.places[place].score(self.protocol, self.metric) for place in self.layout.filled
        }
        means: dict[str, list[float]] = {}
        for place, score in scores.items():
            cell = self.layout.places[place]
            if score and cell.complete:
                means.setdefault(cell.dataset, []).append(self.unit.rounded(score.mean))
        entries = {}
        for place, score in scores.items():
            cell = self.layout.places[place]
            rivals = means.get(cell.dataset, [])
            best = len(rivals) > 1 and cell.complete and score is not None
            best = best and self.unit.rounded(score.mean) == METRICS[self.metric].best(rivals)
            published = PUBLISHED.get((cell.model, cell.dataset)) if self.paper else None
            entries[place] = Entry(cell, score, published, best, self.unit)
        return entries

    @property
    def optimistic(self) -> bool:
        return any(entry.score.optimistic for entry in self.entries.values() if entry.score)

    @property
    def protocol_label(self) -> str:
        return f"{self.protocol} (optimistic)" if self.optimistic else self.protocol

    @property
    def title(self) -> str:
        subject = f"{self.layout.subject}: " if self.layout.subject else ""
        return f"{subject}test {self.metric}{self.unit.remark}, mean ± std over folds, protocol {self.protocol_label}"

    @cached_property
    def notes(self) -> list[str]:
        """What a reader must know to read the numbers right."""
        entries = self.entries.values()
        notes = [self.choice]
        if any(entry.best for entry in entries):
            notes.append("Bold: the best of the complete cells of a dataset.")
        if any(entry.score and not entry.cell.complete for entry in entries):
            notes.append(
                "[n/m folds]: folds are missing, so that the value is left out of bold, ranks and comparisons."
            )
        absent = [entry.cell for entry in entries if entry.cell.complete and entry.score is None]
        if others := sorted({cell.headline for cell in absent if not cell.protocols[self.protocol]}):
            notes.append(
                f"{ABSENT}: these runs have no {self.metric} by {self.protocol}; their own protocol: "
                f"{', '.join(others)}."
            )
        if METRICS[self.metric].is_loss and any(cell.is_kernel for cell in absent):
            notes.append(
                f"{ABSENT}: the decision values of a kernel machine are no probabilities and have no {self.metric}."
            )
        if undefined := sum(len(e.cell.results) - len(e.score.per_fold) for e in entries if e.score):
            notes.append(
                f"{self.metric} is not defined on {undefined} test part{'s' * (undefined > 1)}, left out of the means."
            )
        if self.paper:
            notes.append(
                f"In brackets the published mean and the difference in points ({SOURCE}). "
                "The paper's protocol has no validation part: common_epoch of cv=paper is nearest to it."
            )
        return notes + self.setting_notes

    @property
    def choice(self) -> str:
        """What the protocol chose, and how; of a mean over epochs, of how many."""
        scored = [entry for entry in self.entries.values() if entry.score]
        kernels = [entry.cell.is_kernel for entry in scored]
        chosen = "C" if kernels and all(kernels) else "the epoch"
        chosen += " (of a kernel machine C)" if any(kernels) and not all(kernels) else ""
        averaged = [number for entry in scored for number in entry.score.averaged or ()]
        how = CHOSEN[self.protocol].format(averaged=span(averaged))
        return f"{self.protocol}: {chosen} was chosen {how}."

    @property
    def setting_notes(self) -> list[str]:
        layout, notes = self.layout, []
        seeds = sorted({len(cell.seeds) for cell in layout.cells})
        if seeds[-1] > 1:
            notes.append(
                f"The folds of {' to '.join(map(str, seeds[:: len(seeds) - 1 or 1]))} seeds are pooled."
            )
        if repeated := sum(cell.repeated for cell in layout.cells):
            notes.append(f"{counted(repeated, 'fold')} run more than once: only the newest counts.")
        if layout.differing:
            values = (
                f"{key} ({', '.join(dict.fromkeys(value(cell, key) for cell in layout.cells))})"
                for key in layout.differing
            )
            notes.append(f"Not the same in every cell: {'; '.join(values)}.")
        if layout.keys:
            names = ", ".join(short(key, layout.keys) for key in layout.keys)
            notes.append(f"To choose {names} by this table is to choose on the test parts.")
            notes += self.preferences
        return notes

    @property
    def preferences(self) -> list[str]:
        """Which setting of each model the validation parts prefer, with what it gives on the test parts."""
        rivals: dict[tuple[str, str, str], list[Entry]] = {}
        for entry in self.entries.values():
            cell = entry.cell
            if entry.counts and cell.validation_score is not None:
                chosen_by = value(cell, "trainer.select_by")  # scores of different metrics do not compare
                rivals.setdefault((cell.model, cell.dataset, chosen_by), []).append(entry)
        lines = []
        for (model, dataset, chosen_by), entries in rivals.items():
            if len(entries) > 1:
                best = max(entries, key=lambda entry: entry.cell.validation_score)
                equal = sum(entry.cell.validation_score == best.cell.validation_score for entry in entries)
                first = f", the first of {equal} equals" if equal > 1 else ""
                lines.append(
                    f"{model} on {dataset}: validation prefers {self.layout.setting(best.cell)} "
                    f"(validation {chosen_by} {100 * best.cell.validation_score:.1f}{first}), "
                    f"test {best.text} by {self.protocol_label}."
                )
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
    layout = lay_out(cells)
    headlines = {cell.headline for cell in cells} - {None}
    default = "selected" if "selected" in headlines else "common_epoch"
    wanted = present if protocol == "all" else [protocol or default]
    return [ResultTable(layout, name, metric, paper) for name in wanted]


def counted(number: int, noun: str) -> str:
    return f"{number} {noun} was" if number == 1 else f"{number} {noun}s were"
