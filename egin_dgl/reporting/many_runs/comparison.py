"""Ranks over datasets, and paired tests of two models on the same folds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
from scipy import stats

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.evaluation.protocols import ProtocolResult
from egin_dgl.evaluation.statistics import PairedTest, holm, paired_test
from egin_dgl.reporting.formatting import protocol_label, unit_of
from egin_dgl.reporting.many_runs.pivot import Pivot
from egin_dgl.reporting.many_runs.renderers import TextTable
from egin_dgl.reporting.many_runs.run_groups import RunGroup
from egin_dgl.reporting.many_runs.table import ResultTable

LEVEL = 0.05  # of significance


def significance(p: float) -> str:
    return "significant" if p < LEVEL else "not statistically significant"


def rank_table(table: ResultTable) -> TextTable | None:
    """Mean rank of each row over the datasets where every row is complete, best first; ties share their mean rank.

    None for fewer than two rows or two such datasets. The Friedman test needs three, and rows that differ.
    """
    pivot, metric = table.pivot, METRICS[table.metric]
    if pivot.column_key != "dataset":
        return None
    # Values as printed: every bold value is then a dataset won.
    means = pd.DataFrame(index=[pivot.row_label(row) for row in pivot.rows])
    for column in pivot.columns:
        cells = [table.cells.get((row, column)) for row in pivot.rows]
        if len({cell.test_sets for cell in cells if cell}) > 1:  # not comparable
            continue
        means[column] = [cell.comparable if cell else float("nan") for cell in cells]
    means = means.dropna(axis="columns")
    if min(means.shape) < 2:
        return None
    rows = pd.DataFrame({"rank": means.rank(ascending=metric.is_loss).mean(axis="columns")})
    rows["won"] = means.eq(means.apply(metric.best)).sum(axis="columns")
    note = f"Over {', '.join(means.columns)}, where every row is complete."
    if min(means.shape) >= 3 and means.ne(means.iloc[0]).any(axis=None):
        p = float(stats.friedmanchisquare(*means.to_numpy()).pvalue)
        note += f" Friedman test: p = {p:.3g}, differences are {significance(p)}."
    rows = rows.sort_values("rank", kind="stable")
    lines = [[str(row.Index), f"{row.rank:.2f}", str(row.won)] for row in rows.itertuples()]
    title = f"Ranks over {means.shape[1]} datasets, protocol {table.protocol_label}"
    return TextTable(title, [["", "mean rank", "datasets won"], *lines], 1, [note], bullet="")


@dataclass(frozen=True)
class ModelComparison:
    """A paired test of two models on one dataset; `p_holm` is adjusted for the number of datasets."""

    dataset: str
    first: str
    second: str
    means: tuple[float, float]
    test: PairedTest
    expected: int  # folds of complete runs
    protocol: str  # marked if it is optimistic
    metric: str
    p_holm: float = float("nan")

    @property
    def sentence(self) -> str:
        test, unit, like = self.test, unit_of(self.metric), self.means[0]
        folds = f"{test.folds} of {self.expected}" if test.folds < self.expected else str(test.folds)
        if unit.round(test.difference, like) == 0:
            return f"On {self.dataset} {self.first} and {self.second} are equal on average ({folds} folds)."
        better, worse = self.first, self.second
        if (test.difference > 0) == METRICS[self.metric].is_loss:
            better, worse = worse, better
        low, high = (test.low, test.high) if test.difference > 0 else (-test.high, -test.low)
        p = f"p = {test.p:.3g}" + ("" if self.p_holm == test.p else f", {self.p_holm:.3g} by Holm")
        return (
            f"On {self.dataset} {better} is better than {worse} by {unit.text(abs(test.difference), like)}{unit.name} in test "
            f"{self.metric} by {self.protocol}, {significance(self.p_holm)} "
            f"(95 % interval {unit.signed(low, like)} to {unit.signed(high, like)}, {p}, {folds} folds)."
        )


def comparison_table(comparisons: Sequence[ModelComparison]) -> TextTable:
    """A line per dataset, with Holm's adjustment if there are several."""
    one, unit = comparisons[0], unit_of(comparisons[0].metric)
    title = f"{one.first} against {one.second}: corrected resampled t-test on the same folds, "
    title += f"test {one.metric}{unit.remark}, protocol {one.protocol}"
    lines = [["dataset", one.first, one.second, "difference", "95 % interval", "t", "p", "p, Holm", "folds"]]
    for other in comparisons:
        test, like = other.test, other.means[0]
        line = [other.dataset, *(unit.text(mean, like) for mean in other.means)]
        line += [unit.signed(value, like) for value in (test.difference, test.low, test.high)]
        line[-2:] = [" to ".join(line[-2:]), f"{test.t:.2f}".replace("-", "−")]
        line += [f"{test.p:.3g}", f"{other.p_holm:.3g}"]
        line.append(str(test.folds) if test.folds == other.expected else f"{test.folds}/{other.expected}")
        lines.append(line)
    if len(comparisons) == 1:  # nothing to adjust
        lines = [[*line[:-2], line[-1]] for line in lines]
    return TextTable(title, lines, 1, [other.sentence for other in comparisons])


def compare_models(
    pivot: Pivot, first: str, second: str, protocol: str, metric: str = "accuracy"
) -> list[ModelComparison]:
    """Compare two models, named by their options or as in tables, on every dataset that has both."""
    ones, others = find_model(pivot, first), find_model(pivot, second)
    for name, groups in ((first, ones), (second, others)):
        if not groups:
            models = ", ".join(dict.fromkeys(group.model for group in pivot.groups))
            raise ConfigError(f"no run has a model {name!r}; valid: {models}")
    shared = shared_datasets(pivot, first, second)
    if not shared:
        raise ConfigError(f"no dataset has runs of both {first} and {second}")
    found = []
    for dataset in shared:
        one, other = single_group(first, ones[dataset], pivot), single_group(second, others[dataset], pivot)
        if one is other:
            raise ConfigError(f"{first} and {second} are the same on {dataset}: nothing to compare")
        found.append(compare_groups(one, other, protocol, metric))
    adjusted = holm([one.test.p for one in found])
    return [replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True)]


def compare_groups(first: RunGroup, second: RunGroup, protocol: str, metric: str) -> ModelComparison:
    """Compare on the folds that are finished in both, by which protocols over all folds choose too."""
    names = f"{first.model} and {second.model} on {first.dataset}"
    check_same_folds(first, second, names)
    shared = [key for key in first.results if key in second.results]
    if len(shared) < 2:
        raise ConfigError(f"{names} have {len(shared)} finished folds in common: a test needs at least two")

    def score(group: RunGroup) -> ProtocolResult:
        result = replace(group, results={key: group.results[key] for key in shared}).score(protocol, metric)
        if result is None or len(result.per_fold) != len(shared):
            raise ConfigError(f"{names}: not every fold has {metric} by {protocol}")
        return result

    one, other = score(first), score(second)
    return ModelComparison(
        dataset=first.dataset,
        first=first.model,
        second=second.model,
        means=(one.mean, other.mean),
        test=paired_test(one.per_fold, other.per_fold, first.test_to_train),
        expected=max(first.expected, second.expected),
        protocol=protocol_label(protocol, one.optimistic),
        metric=metric,
    )


def check_same_folds(first: RunGroup, second: RunGroup, names: str) -> None:
    ones, others = ({run.seed: run.folds_hash for run in g.runs if run.folds_hash} for g in (first, second))
    seeds = ones.keys() & others.keys()
    if not seeds:
        raise ConfigError(f"{names} have no seed in common: train both with the same seed")
    if any(ones[seed] != others[seed] for seed in seeds):
        raise ConfigError(f"{names} were trained on different folds and cannot be compared fold by fold")
    if first.validation != second.validation:
        raise ConfigError(f"only one of {names} has a validation set: their training sets differ")


def find_model(pivot: Pivot, name: str) -> dict[str, list[RunGroup]]:
    """Groups of a model by dataset, none if it is unknown; an exact name takes precedence over a similar one."""
    exact = [group for group in pivot.groups if group.model == name]
    plain = plain_name(name)
    similar = [g for g in pivot.groups if plain in (plain_name(g.model), plain_name(g.option))]
    found: dict[str, list[RunGroup]] = {}
    for group in exact or similar:
        found.setdefault(group.dataset, []).append(group)
    return found


def shared_datasets(pivot: Pivot, first: str, second: str) -> list[str]:
    others = find_model(pivot, second)
    return [dataset for dataset in find_model(pivot, first) if dataset in others]


def single_group(name: str, groups: Sequence[RunGroup], pivot: Pivot) -> RunGroup:
    if len(groups) == 1:
        return groups[0]
    found = "; ".join(f"{group.model} {pivot.setting(group)}".strip() for group in groups)
    unique = len({group.model for group in groups}) == len(groups)
    advice = "use one of these names" if unique else "give only the directories of one"
    raise ConfigError(f"{name} is ambiguous on {groups[0].dataset} ({found}): {advice}")


def plain_name(name: str) -> str:
    return name.casefold().replace("_", "-").replace("-eps", "-ε")
