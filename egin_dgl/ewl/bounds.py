"""The best score of any model that gives equal predictions to graphs it cannot distinguish.

Each function takes the set of each graph's equals, (n,) integers, and one target of the same graphs, (n,) numbers without NaN.
A model of that power predicts one number or class for each set; which, is free, so that the bounds are reached.
"""

from collections.abc import Callable

import numpy as np

Bound = Callable[[np.ndarray, np.ndarray], float]


def highest_accuracy(sets: np.ndarray, classes: np.ndarray) -> float:
    """Each set is predicted to be of its most common class."""
    counts = _count(sets, np.unique(classes, return_inverse=True)[1])
    return float(counts.max(axis=1).sum() / len(sets))


def highest_auroc(sets: np.ndarray, labels: np.ndarray) -> float:
    r"""Sets are ranked by their rate of positives, which is the likelihood ratio: no other ranking has a higher AUROC.

    .. math:: \frac{1}{PN} \sum_s n_s \Big( \sum_{r \text{ above } s} p_r + \tfrac{1}{2} p_s \Big)

    with :math:`p_s` positives and :math:`n_s` negatives in set s, P and N in all. NaN for labels of one kind.
    """
    if labels.min() == labels.max():
        return float("nan")
    negatives, positives = _count(sets, (labels > 0).astype(np.int64)).T
    order = np.argsort(
        -positives / (negatives + positives), kind="stable"
    )  # sets of one rate may come in any order
    negatives, positives = negatives[order], positives[order]
    pairs = (negatives * (2 * positives.cumsum() - positives)).sum()
    return float(pairs / (2 * positives.sum() * negatives.sum()))


def lowest_rmse(sets: np.ndarray, values: np.ndarray) -> float:
    """Each set is predicted to have its mean: √ mean (y − mean of its set)²."""
    # Differences from one value of the set: equal values then deviate by exactly 0.
    _, first, number = np.unique(sets, return_index=True, return_inverse=True)
    offsets = values - values[first][number]
    means = np.bincount(number, offsets) / np.bincount(number)
    return float(np.sqrt(np.square(offsets - means[number]).mean()))


# The metric that the bound is of, by task; each is the main one of its task.
BOUNDS: dict[str, tuple[str, Bound]] = {
    "multiclass": ("accuracy", highest_accuracy),
    "multilabel": ("auroc", highest_auroc),
    "regression": ("rmse", lowest_rmse),
}


def bounds_per_target(bound: Bound, sets: np.ndarray, targets: np.ndarray) -> tuple[float | None, ...]:
    """The bound of each target (T,) over the graphs with a value, given targets (G, T); None where it is undefined."""
    known = ~np.isnan(targets)
    values = [
        bound(sets[has], column[has]) if has.any() else float("nan")
        for has, column in zip(known.T, targets.T, strict=True)
    ]
    return tuple(None if np.isnan(value) else value for value in values)


def mean_bound(values: tuple[float | None, ...]) -> float | None:
    """Mean over the targets for which a bound is defined; None if it is for none."""
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None


def _count(sets: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Graphs of each class in each set, (sets, classes)."""
    number = np.unique(sets, return_inverse=True)[1]
    counts = np.zeros((number.max() + 1, classes.max() + 1), dtype=np.int64)
    np.add.at(counts, (number, classes), 1)
    return counts
