"""Strata of graphs for folds: kinds of targets, of which every fold gets its share."""

import numpy as np

BINS = 10  # quantile bins of a target with more values


def indicators(labels: np.ndarray) -> np.ndarray:
    """Which strata each graph belongs to, (G, S) bool, given the labels of `GraphDataset`.

    The strata are the classes, or the values of each target: 0 and 1 of a multilabel target, the quantile bins of a real one.
    A missing target belongs to none.
    """
    columns = labels[:, None] if labels.ndim == 1 else labels
    numbers = [strata(column) for column in columns.T]
    found = [number[:, None] == np.arange(number.max(initial=-1) + 1) for number in numbers]
    belongs = np.concatenate(found, axis=1)
    return belongs[:, belongs.any(axis=0)]  # a value that is more common than a bin leaves bins empty


def strata(column: np.ndarray) -> np.ndarray:
    """The stratum of each graph by one target, (G,): the rank of its value, or its quantile bin; -1 where it is missing."""
    known = ~np.isnan(column.astype(np.float64))
    values = np.unique(column[known])
    if len(values) > BINS and column.dtype.kind == "f":
        values = np.quantile(column[known], np.arange(1, BINS) / BINS)
    return np.where(known, np.searchsorted(values, column), -1)


def assign_by_class(order: np.ndarray, classes: np.ndarray, groups: np.ndarray, k: int) -> list[np.ndarray]:
    """Folds of graphs that belong to one stratum each: sizes, and the counts of each stratum, differ by at most one.

    Each group, the largest first, is assigned to the fold with fewest graphs of its strata, then of all.

    Args:
        order: random permutation of the graphs.
        classes: stratum of each graph, (G,).
        groups: group of each graph, (G,), which is never divided.
        k: number of folds.
    """
    count = int(classes.max()) + 1
    counts = np.zeros((k, count), dtype=np.int64)
    folds: list[list[int]] = [[] for _ in range(k)]
    for group in sorted(members_of(order, groups), key=lambda group: (-len(group), classes[group[0]])):
        content = np.bincount(classes[group], minlength=count)
        fold = np.lexsort((counts.sum(axis=1), counts @ content))[0]
        counts[fold] += content
        folds[fold] += group
    return [np.sort(np.array(fold, dtype=np.int64)) for fold in folds]


def assign_iteratively(
    order: np.ndarray, belongs: np.ndarray, groups: np.ndarray, k: int
) -> list[np.ndarray]:
    """Folds of graphs that belong to any number of strata: iterative stratification (Sechidis et al., ECML PKDD 2011).

    The stratum with the fewest graphs left is distributed first, each graph to the fold that lacks most of the stratum, then
    most of its other strata, in shares of them, then most graphs. A fold that is full takes no more, so that sizes differ by at most one, but for what groups cost.

    Args:
        belongs: (G, S) bool, see `indicators`; the other arguments are those of `assign_by_class`.
    """
    members = members_of(order, groups)
    content = np.array(
        [belongs[group].sum(axis=0) for group in members]
    )  # (groups, S) graphs of each stratum
    sizes = np.array([len(group) for group in members])
    total = content.sum(axis=0)
    lacking = np.tile(total / k, (k, 1))  # (k, S)
    room = np.full(k, len(order) // k) + (np.arange(k) < len(order) % k)
    waiting = np.ones(len(members), dtype=bool)
    folds: list[list[int]] = [[] for _ in range(k)]

    def assign(group: int, wanted: np.ndarray) -> None:
        fitting = room >= sizes[group] if (room >= sizes[group]).any() else np.full(k, True)
        fold = np.lexsort((-room, -lacking @ (content[group] / total), -wanted, ~fitting))[0]
        lacking[fold] -= content[group]
        room[fold] -= sizes[group]
        waiting[group] = False
        folds[fold].extend(members[group])

    # Groups of more than half a fold would find no room later.
    large = np.flatnonzero(2 * k * sizes > len(order))
    for group in large[np.argsort(-sizes[large], kind="stable")]:
        assign(group, room)
    left = content[waiting].sum(axis=0)
    while left.any():
        rarest = int(np.where(left > 0, left, np.inf).argmin())
        chosen = np.flatnonzero(waiting & (content[:, rarest] > 0))
        for group in chosen[np.argsort(-content[chosen, rarest], kind="stable")]:
            assign(group, lacking[:, rarest])
        left = content[waiting].sum(axis=0)
    for group in np.flatnonzero(waiting).tolist():
        assign(group, room)
    return [np.sort(np.array(fold, dtype=np.int64)) for fold in folds]


def members_of(order: np.ndarray, groups: np.ndarray) -> list[list[int]]:
    """The graphs of each group, in the given order."""
    members: dict[int, list[int]] = {}
    for graph in order.tolist():
        members.setdefault(int(groups[graph]), []).append(graph)
    return list(members.values())
