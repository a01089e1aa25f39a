"""Audit of a dataset: bounds on the scores of models by colour refinement, duplicates, and duplicates across folds."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np

from egin_dgl.data.splits import Folds
from egin_dgl.errors import DataError
from egin_dgl.ewl.bounds import BOUNDS, Bound, bounds_per_target, mean_bound
from egin_dgl.ewl.inputs import as_graph_set
from egin_dgl.ewl.isomorphism import Matcher
from egin_dgl.ewl.refinement import MAX_REPEATED, Refinement, refine, refine_at_most, stable_colors

Progress = Callable[[int, int], None]  # (pairs compared, maximum number of pairs)


@dataclass(frozen=True)
class Level:
    """One method at one depth."""

    method: str
    depth: int
    colors: int  # number of different node colours in the set
    graphs: int  # number of different colour multisets, that is of graphs that the method distinguishes
    bound: (
        float | None
    )  # best `Audit.metric` of any function of the colour multiset, the mean over targets; None without labels
    per_target: tuple[float | None, ...] = ()  # the bound of each target


Leak = tuple[tuple[int, int], ...]  # duplicates in more than one fold: (graph, fold) of each


@dataclass(frozen=True, repr=False)
class Audit:
    """Result of `audit`."""

    dataset: str  # name
    graphs: int  # number
    levels: tuple[Level, ...]  # for each method and depth
    duplicates: tuple[tuple[int, ...], ...]  # groups of isomorphic graphs with equal node and edge labels
    opposite: tuple[tuple[int, ...], ...]  # the groups whose graphs have different values of a target
    leaks: tuple[Leak, ...] | None = None  # the groups that span several folds; None if no folds were given
    metric: str = "accuracy"  # of the bounds
    targets: tuple[str, ...] = ()  # names

    def __repr__(self) -> str:
        methods = ", ".join(dict.fromkeys(level.method for level in self.levels))
        depth = max((level.depth for level in self.levels), default=0)
        copies = f"{len(self.duplicates)} groups of duplicates, {len(self.opposite)} of different targets"
        return f"Audit({self.dataset!r}: {self.graphs} graphs by {methods} to depth {depth}; {copies})"

    def level(self, method: str, depth: int) -> Level:
        """The record of one method at one depth; a method that is stable before it has its last."""
        found = [level for level in self.levels if level.method == method and level.depth <= depth]
        if not found or depth > max(level.depth for level in self.levels):
            raise KeyError(f"no {method} at depth {depth} in this audit")
        return found[-1]

    @property
    def leaking_graphs(self) -> int:
        """Number of graphs with a duplicate in another fold."""
        return sum(map(len, self.leaks or ()))

    def to_dict(self) -> dict:
        """The audit as a JSON object."""
        return asdict(self) | ({} if self.leaks is None else {"leaking_graphs": self.leaking_graphs})


def audit(
    dataset: object,
    methods: Sequence[str] = ("1-wl", "e-wl"),
    depth: int = 5,
    folds: Folds | Sequence[Sequence[int]] | None = None,
    labels: object = None,
    attributes: bool = True,
    decimals: int | None = None,
    progress: bool | Progress = False,
) -> Audit:
    """Count what each method distinguishes at each depth, and find duplicates.

    Args:
        dataset: A GraphDataset, or any graphs that `as_graph_set` reads.
        methods: Refinement methods.
        depth: Maximum depth; one beyond 100 ends where the colours are stable.
        folds: Folds or lists of graph indices, to find duplicates across folds.
        labels: Class of each graph, :math:`(G,)`, or numbers :math:`(G,)` or :math:`(G, T)`, NaN where missing; default: the
            labels of the dataset. Columns of 0 and 1 are multilabel.
        attributes: False ignores continuous attributes.
        decimals: Round real labels first.
        progress: True shows a progress bar; a function is called with (pairs compared, maximum number of pairs).

    >>> from egin_dgl.data import bonds
    >>> found = audit(bonds(graphs=20), depth=1)
    >>> found.level("1-wl", 1).bound, found.level("e-wl", 1).bound
    (0.5, 1.0)
    """
    graphs = as_graph_set(dataset, attributes=attributes, decimals=decimals)
    info = getattr(dataset, "info", None)
    targets, task = _targets(getattr(dataset, "labels", None) if labels is None else labels, len(graphs))
    metric, bound = BOUNDS[info.task if info and labels is None else task]
    levels = []
    for method in methods:
        refinement = refine_at_most(graphs, method, depth)
        levels += [_level(refinement, d, targets, bound) for d in range(refinement.depth + 1)]
    duplicates = _groups(duplicate_groups(graphs, progress=progress))
    opposite = [group for group in duplicates if _differ(targets[list(group)])]
    indices = folds.indices if isinstance(folds, Folds) else folds
    return Audit(
        dataset=info.name if info else "",
        graphs=len(graphs),
        levels=tuple(levels),
        duplicates=tuple(duplicates),
        opposite=tuple(opposite),
        leaks=None if indices is None else _leaks(duplicates, indices, len(graphs)),
        metric=metric,
        targets=info.target_names if info and labels is None else tuple(map(str, range(targets.shape[1]))),
    )


def duplicate_groups(
    dataset: object,
    attributes: bool = True,
    decimals: int | None = None,
    progress: bool | Progress = False,
) -> np.ndarray:
    """Number of each graph's group, (G,) int64: isomorphic graphs with equal labels share a number.

    Candidates are graphs with equal stable E-WL colours; each is confirmed by an exact comparison.
    """
    graphs = as_graph_set(dataset, attributes=attributes, decimals=decimals)
    colors = stable_colors(graphs)
    matcher = Matcher(graphs, colors)
    candidates = _groups(Refinement("e-wl", graphs, [colors], stable_depth=0).graph_classes())
    groups = np.arange(len(graphs))
    done, total = 0, sum(len(members) - 1 for members in candidates)
    with _progress(progress) as advance:
        for members in candidates:
            representatives = [members[0]]  # one graph of each group of this class
            for graph in members[1:]:
                found = (other for other in representatives if matcher.isomorphic(other, graph))
                groups[graph] = next(found, graph)
                if groups[graph] == graph:
                    representatives.append(graph)
                done += 1
                advance(done, total)
    return np.unique(groups, return_inverse=True)[1].reshape(-1).astype(np.int64)


def count_leaks(dataset: object, folds: Sequence[np.ndarray]) -> int:
    """Number of graphs that have the E-WL colours of a graph in another fold, at depth 100; no exact comparison."""
    graphs = as_graph_set(dataset)
    # Most graphs differ after two rounds. A chain of thousands of nodes would take thousands of rounds.
    groups = _groups(refine(graphs, depth=2).graph_classes())
    alike = np.fromiter(chain.from_iterable(groups), dtype=np.int64)
    chosen = graphs.subset(alike)
    groups = _groups(refine(chosen, depth=MAX_REPEATED).graph_classes())
    duplicates = [tuple(alike[list(group)].tolist()) for group in groups]
    return sum(map(len, _leaks(duplicates, folds, len(graphs))))


def _level(refinement: Refinement, depth: int, targets: np.ndarray, bound: Bound) -> Level:
    classes = refinement.graph_classes(depth)
    values = bounds_per_target(bound, classes, targets)
    count = int(classes.max(initial=-1)) + 1
    return Level(refinement.method, depth, refinement.num_colors(depth), count, mean_bound(values), values)


def _differ(targets: np.ndarray) -> bool:
    """Whether graphs (n, T) have different values of a target."""
    return any(len(np.unique(column[~np.isnan(column)])) > 1 for column in targets.T)


def _targets(labels: Any, count: int) -> tuple[np.ndarray, str]:
    """Labels as targets (G, T), float64 with NaN where unknown, and the task they suggest; classes as numbers."""
    if labels is None:
        return np.full((count, 1), np.nan), "multiclass"
    values = np.asarray(labels.cpu() if hasattr(labels, "cpu") else labels)
    if values.ndim not in (1, 2) or len(values) != count:
        raise DataError(
            f"labels must be one class, or one row of targets, for each of {count} graphs, got shape {values.shape}"
        )
    if values.ndim == 2:
        known = values[~np.isnan(values)]
        return values.astype(np.float64), "multilabel" if np.isin(known, (0, 1)).all() else "regression"
    if values.dtype.kind == "f" and not np.array_equal(
        values, np.floor(values)
    ):  # NaN is not equal to itself
        return values[:, None].astype(np.float64), "regression"
    if values.dtype.kind not in "iu" or values.min(initial=-1) < -1:
        values = np.unique(values, return_inverse=True)[1].reshape(-1)
    return np.where(values < 0, np.nan, values)[:, None].astype(np.float64), "multiclass"


def _groups(numbers: np.ndarray) -> list[tuple[int, ...]]:
    """Indices of each number that occurs more than once, ordered by the first index."""
    order = np.argsort(numbers, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
    return sorted(tuple(part.tolist()) for part in parts if len(part) > 1)


def _leaks(
    duplicates: Sequence[tuple[int, ...]], folds: Sequence[Sequence[int]] | Sequence[np.ndarray], count: int
) -> tuple[Leak, ...]:
    fold_of = np.full(count, -1)
    for number, fold in enumerate(folds):
        members = np.asarray(fold, dtype=np.int64)
        if len(members) and not 0 <= members.min() <= members.max() < count:
            raise DataError(f"fold {number} has a graph outside 0 to {count - 1}")
        fold_of[members] = number
    found = []
    for group in duplicates:
        placed = [(graph, int(fold_of[graph])) for graph in group if fold_of[graph] >= 0]
        if len({fold for _, fold in placed}) > 1:
            found.append(tuple(placed))
    return tuple(found)


@contextmanager
def _progress(progress: bool | Progress) -> Iterator[Progress]:
    """The given function, the update of a progress bar on stderr, or nothing."""
    if progress is not True:
        yield progress or (lambda done, total: None)
        return
    from rich.console import Console
    from rich.progress import Progress as ProgressBar

    with ProgressBar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("confirming duplicates", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
