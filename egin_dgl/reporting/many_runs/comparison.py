"""Models against each other: rows ranked over datasets, and two models tested on the same folds, dataset by dataset."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
from scipy import stats

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import MAIN, METRICS
from egin_dgl.evaluation.protocols import ProtocolResult
from egin_dgl.evaluation.statistics import PairedTest, holm, paired_test
from egin_dgl.reporting.formatting import marked, unit_of
from egin_dgl.reporting.many_runs.pivot import Layout
from egin_dgl.reporting.many_runs.renderers import Sheet
from egin_dgl.reporting.many_runs.run_groups import Cell
from egin_dgl.reporting.many_runs.table import ResultTable

LEVEL = 0.05


@dataclass(frozen=True)
class Ranks:
    """Over the datasets where every row is complete; rank 1 is best, equals share the mean of their ranks."""

    rows: pd.DataFrame  # by label, the best first: rank, won; a dataset won by several counts for each
    datasets: tuple[str, ...]
    friedman_p: float | None  # None for fewer than three rows or datasets, or where all are equal
    protocol: str

    @property
    def sheet(self) -> Sheet:
        lines = [[str(row.Index), f"{row.rank:.2f}", str(row.won)] for row in self.rows.itertuples()]
        note = f"Over {', '.join(self.datasets)}, where every row is complete."
        if self.friedman_p is not None:
            shown = (
                "the rows differ" if self.friedman_p < LEVEL else "no difference between the rows is shown"
            )
            note += f" Friedman's test: p = {self.friedman_p:.3g}, {shown}."
        title = f"Ranks over {len(self.datasets)} datasets, protocol {self.protocol}"
        return Sheet(title, [["", "mean rank", "datasets won"], *lines], 1, [note], bullet="")


def rank(table: ResultTable) -> Ranks | None:
    """None where there is nothing to rank: it takes two rows, and two datasets where every row is complete."""
    layout, metric = table.layout, METRICS[table.metric]
    if layout.column_key != "dataset":
        return None
    # As printed, so that whoever ranks the table by hand finds the same, and every bold value is a dataset won.
    means = pd.DataFrame(index=[layout.row_label(row) for row in layout.rows])
    for column in layout.columns:
        entries = [table.entries.get((row, column)) for row in layout.rows]
        means[column] = [entry.rival if entry else float("nan") for entry in entries]
    means = means.dropna(axis="columns")
    if min(means.shape) < 2:
        return None
    rows = pd.DataFrame({"rank": means.rank(ascending=metric.is_loss).mean(axis="columns")})
    rows["won"] = means.eq(means.apply(metric.best)).sum(axis="columns")
    p = None
    if min(means.shape) >= 3 and means.ne(means.iloc[0]).any(axis=None):
        p = float(stats.friedmanchisquare(*means.to_numpy()).pvalue)
    return Ranks(rows.sort_values("rank", kind="stable"), tuple(means.columns), p, table.protocol_label)


@dataclass(frozen=True)
class ModelComparison:
    """On one dataset; `p_holm` takes into account that as many tests were made as there are datasets."""

    dataset: str
    first: str
    second: str
    means: tuple[float, float]
    test: PairedTest
    expected: int  # folds there would be, were all finished
    protocol: str  # with its mark, where it is optimistic
    metric: str
    p_holm: float = float("nan")

    @property
    def sentence(self) -> str:
        test, unit = self.test, unit_of(self.metric)
        better, worse = self.first, self.second
        if (test.difference > 0) == METRICS[self.metric].is_loss:
            better, worse = worse, better
        # The interval of what the better one is ahead by, which is positive, whichever that is.
        low, high = (test.low, test.high) if test.difference > 0 else (-test.high, -test.low)
        measure = f"{unit.text(abs(test.difference))}{unit.name} in test {self.metric} by {self.protocol}"
        p = f"p = {test.p:.3g}" + ("" if self.p_holm == test.p else f", {self.p_holm:.3g} by Holm")
        folds = f"{test.folds} of {self.expected}" if test.folds < self.expected else str(test.folds)
        evidence = f"95 % interval {unit.signed(low)} to {unit.signed(high)}, {p}, {folds} folds"
        if test.difference == 0:
            return f"On {self.dataset} {self.first} and {self.second} are equal on average ({folds} folds)."
        if self.p_holm < LEVEL:
            return f"On {self.dataset} {better} is better than {worse} by {measure} ({evidence})."
        ahead = f"{better} is ahead of {worse} by {measure}, no more than chance may do"
        return f"On {self.dataset} no difference is shown: {ahead} ({evidence})."


def comparison_sheet(comparisons: Sequence[ModelComparison]) -> Sheet:
    """A line a dataset; Holm's adjustment where there are several."""
    one, several, unit = comparisons[0], len(comparisons) > 1, unit_of(comparisons[0].metric)
    title = f"{one.first} against {one.second}: corrected resampled t-test on the same folds, "
    title += f"test {one.metric}{unit.remark}, protocol {one.protocol}"
    header = ["dataset", one.first, one.second, "difference", "95 % interval", "t", "p"]
    lines = [[*header, *(["p, Holm"] if several else []), "folds"]]
    for other in comparisons:
        test = other.test
        line = [other.dataset, *map(unit.text, other.means), unit.signed(test.difference)]
        line += [f"{unit.signed(test.low)} to {unit.signed(test.high)}", f"{test.t:.2f}".replace("-", "−")]
        line += [f"{test.p:.3g}", *([f"{other.p_holm:.3g}"] if several else [])]
        line.append(str(test.folds) if test.folds == other.expected else f"{test.folds}/{other.expected}")
        lines.append(line)
    return Sheet(title, lines, 1, [other.sentence for other in comparisons])


def compare_models(
    layout: Layout, first: str, second: str, protocol: str, metric: str = MAIN.name
) -> list[ModelComparison]:
    """For every dataset that has both; the models by the names of their options, or as tables name them."""
    ones, others = pick(layout, first), pick(layout, second)
    shared = [dataset for dataset in ones if dataset in others]
    if not shared:
        raise ConfigError(f"there is no dataset that has both {first} and {second}")
    found = []
    for dataset in shared:
        one, other = only(first, ones[dataset], layout), only(second, others[dataset], layout)
        if one is other:
            raise ConfigError(f"{first} and {second} are the same on {dataset}: nothing to compare")
        found.append(compare_cells(one, other, protocol, metric))
    adjusted = holm([one.test.p for one in found])
    return [replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True)]


def compare_cells(first: Cell, second: Cell, protocol: str, metric: str) -> ModelComparison:
    """On the folds finished in both; protocols that look at all folds look at these only."""
    where = f"{first.model} and {second.model} on {first.dataset}"
    check_same_folds(first, second, where)
    shared = [key for key in first.results if key in second.results]
    if len(shared) < 2:
        raise ConfigError(f"{where} have {len(shared)} finished folds in common: a test needs two or more")

    def score(cell: Cell) -> ProtocolResult:
        there = replace(cell, results={key: cell.results[key] for key in shared}).score(protocol, metric)
        if there is None or len(there.per_fold) != len(shared):
            raise ConfigError(f"{where}: not every fold has {metric} by {protocol}")
        return there

    one, other = score(first), score(second)
    return ModelComparison(
        dataset=first.dataset,
        first=first.model,
        second=second.model,
        means=(one.mean, other.mean),
        test=paired_test(one.per_fold, other.per_fold, first.test_to_train),
        expected=max(first.expected, second.expected),
        protocol=marked(protocol, one.optimistic),
        metric=metric,
    )


def check_same_folds(first: Cell, second: Cell, where: str) -> None:
    ones, others = ({run.seed: run.folds_hash for run in c.runs if run.folds_hash} for c in (first, second))
    seeds = ones.keys() & others.keys()
    if not seeds:
        told = "have no seed in common, so their folds differ: train both with the same seed"
        raise ConfigError(f"{where} {told}")
    if any(ones[seed] != others[seed] for seed in seeds):
        raise ConfigError(f"{where} were trained on different folds: they cannot be compared fold by fold")
    if first.validation != second.validation:
        told = "had a validation part: they were not trained on the same graphs"
        raise ConfigError(f"only one of {where} {told}")


def pick(layout: Layout, name: str) -> dict[str, list[Cell]]:
    """Cells of a model, by dataset. A name as tables write it wins over one that is only alike."""
    alike = [
        cell for cell in layout.cells if plain_name(name) in (plain_name(cell.model), plain_name(cell.option))
    ]
    matching = [cell for cell in layout.cells if cell.model == name] or alike
    if not matching:
        there = ", ".join(dict.fromkeys(cell.model for cell in layout.cells))
        raise ConfigError(f"no run is of a model {name!r}; there are: {there}")
    return {d: [c for c in matching if c.dataset == d] for d in dict.fromkeys(c.dataset for c in matching)}


def only(name: str, cells: Sequence[Cell], layout: Layout) -> Cell:
    if len(cells) == 1:
        return cells[0]
    there = "; ".join(f"{cell.model} {layout.setting(cell)}".strip() for cell in cells)
    models = {cell.model for cell in cells}
    way = "name one as it is written here" if len(models) == len(cells) else "give only the folders of one"
    raise ConfigError(f"{name} may be several on {cells[0].dataset} ({there}): {way}")


def plain_name(name: str) -> str:
    return name.casefold().replace("_", "-").replace("-eps", "-ε")
