"""Two models on the same folds, dataset by dataset: the corrected resampled t-test, and what it says in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import MAIN, METRICS
from egin_dgl.evaluation.statistics import PairedTest, holm, paired_test
from egin_dgl.reporting.many_runs.cells import Cell
from egin_dgl.reporting.many_runs.layout import Layout
from egin_dgl.reporting.units import unit_of

LEVEL = 0.05


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
        folds = (
            f"{test.folds} of {self.expected} folds" if test.folds < self.expected else f"{test.folds} folds"
        )
        evidence = f"95 % interval {unit.signed(low)} to {unit.signed(high)}, {p}, {folds}"
        if test.difference == 0:
            return f"On {self.dataset} {self.first} and {self.second} are equal on average ({folds})."
        if self.p_holm < LEVEL:
            return f"On {self.dataset} {better} is better than {worse} by {measure} ({evidence})."
        return (
            f"On {self.dataset} no difference is shown: {better} is ahead of {worse} by {measure}, "
            f"no more than chance may do ({evidence})."
        )


def compare_models(
    layout: Layout, first: str, second: str, protocol: str, metric: str = MAIN.name
) -> list[ModelComparison]:
    """For every dataset that has both; the models by the names of their options, or as tables name them."""
    cells = layout.cells
    chosen = [pick(cells, name) for name in (first, second)]
    shared = [dataset for dataset in chosen[0] if dataset in chosen[1]]
    if not shared:
        raise ConfigError(f"there is no dataset that has both {first} and {second}")
    found = []
    for dataset in shared:
        pair = [
            only(name, by_dataset[dataset], layout)
            for name, by_dataset in zip((first, second), chosen, strict=True)
        ]
        if pair[0] is pair[1]:
            raise ConfigError(f"{first} and {second} are the same on {dataset}: nothing to compare")
        found.append(compare_cells(*pair, protocol, metric))
    adjusted = holm([one.test.p for one in found])
    return [replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True)]


def compare_cells(first: Cell, second: Cell, protocol: str, metric: str) -> ModelComparison:
    """On the folds finished in both; protocols that look at all folds look at these only."""
    check_same_folds(first, second)
    shared = [key for key in first.results if key in second.results]
    where = f"{first.model} and {second.model} on {first.dataset}"
    if len(shared) < 2:
        raise ConfigError(f"{where} have {len(shared)} finished folds in common: a test needs two or more")
    scores = [
        replace(cell, results={key: cell.results[key] for key in shared}).score(protocol, metric)
        for cell in (first, second)
    ]
    if None in scores or any(len(score.per_fold) != len(shared) for score in scores):
        raise ConfigError(f"{where}: not every fold has {metric} by {protocol}")
    return ModelComparison(
        dataset=first.dataset,
        first=first.model,
        second=second.model,
        means=tuple(float(np.mean(score.per_fold)) for score in scores),
        test=paired_test(*(score.per_fold for score in scores), first.test_to_train),
        expected=max(first.expected, second.expected),
        protocol=f"{protocol} (optimistic)" if scores[0].optimistic else protocol,
        metric=metric,
    )


def check_same_folds(first: Cell, second: Cell) -> None:
    hashes = [{run.seed: run.folds_hash for run in cell.runs if run.folds_hash} for cell in (first, second)]
    seeds = [seed for seed in hashes[0] if seed in hashes[1]]
    where = f"{first.model} and {second.model} on {first.dataset}"
    if not seeds:
        raise ConfigError(
            f"{where} have no seed in common, so their folds differ: train both with the same seed"
        )
    if any(hashes[0][seed] != hashes[1][seed] for seed in seeds):
        raise ConfigError(f"{where} were trained on different folds: they cannot be compared fold by fold")
    if first.validation != second.validation:
        raise ConfigError(
            f"only one of {where} had a validation part: they were not trained on the same graphs"
        )


def pick(cells: Sequence[Cell], name: str) -> dict[str, list[Cell]]:
    """Cells of a model, by dataset. A name as tables write it wins over one that is only alike."""
    matching = [cell for cell in cells if cell.model == name] or [
        cell for cell in cells if alike(name) in (alike(cell.model), alike(cell.option))
    ]
    if not matching:
        there = ", ".join(dict.fromkeys(cell.model for cell in cells))
        raise ConfigError(f"no run is of a model {name!r}; there are: {there}")
    by_dataset: dict[str, list[Cell]] = {}
    for cell in matching:
        by_dataset.setdefault(cell.dataset, []).append(cell)
    return by_dataset


def only(name: str, cells: Sequence[Cell], layout: Layout) -> Cell:
    if len(cells) == 1:
        return cells[0]
    there = "; ".join(f"{cell.model} {layout.setting(cell)}".strip() for cell in cells)
    models = {cell.model for cell in cells}
    way = "name one as it is written here" if len(models) == len(cells) else "give only the folders of one"
    raise ConfigError(f"{name} may be several on {cells[0].dataset} ({there}): {way}")


def alike(name: str) -> str:
    return name.casefold().replace("_", "-").replace("-eps", "-ε")
