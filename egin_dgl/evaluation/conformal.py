r"""Conformal prediction: intervals and label sets that contain the truth with a chosen probability, the level 1 − α.

A task gives every prediction and possible truth a score, small where they agree: :math:`|y - \hat y|` of a value,
:math:`1 - p_y` of a class. From the scores of n graphs that their models have not seen, the test graphs of all folds,

.. math:: q = \text{the } \lceil (n + 1)(1 - \alpha) \rceil \text{-th smallest score}, \qquad
   C(x) = \{y : s(x, y) \le q\}

contains the truth of a new graph of the same kind with a probability of at least 1 − α (Vovk et al., 2005; Lei et al., 2018).
Scores are those of the model of one fold; the mean over folds errs less, so that its coverage tends to be higher.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

MAX_SCORES = 500  # stored for each target: the level is rounded up by at most 1 / 500
LEVEL = 0.9  # at which coverage is measured, and the default of predictions


def rank(n: int, level: float) -> int:
    """⌈(n + 1) level⌉, where 0.9 × 10 is 9 in spite of rounding."""
    return math.ceil(round((n + 1) * level, 9))


def conformal_quantile(scores: Sequence[float], level: float, graphs: int | None = None) -> float:
    """The ⌈(n + 1) level⌉-th smallest of n scores in ascending order; infinite where n is too small for the level.

    `scores` may be those of `thin_scores`, of a number of `graphs`.
    """
    graphs = len(scores) if graphs is None else graphs
    k = rank(graphs, level)
    return math.inf if k > graphs else scores[-(-k * len(scores) // graphs) - 1]


def thin_scores(scores: Tensor) -> list[float]:
    """At most MAX_SCORES of n scores, in ascending order: those of the ranks ⌈j n / m⌉ for j = 1 … m."""
    ordered, n = scores.sort().values.tolist(), len(scores)
    m = min(n, MAX_SCORES)
    return [ordered[-(-j * n // m) - 1] for j in range(1, m + 1)]


def conformal_quantiles(record: Mapping, level: float) -> Tensor:
    """The quantile of each target, (T,), from what `summarize_conformal` returned."""
    pairs = zip(record["scores"], record["graphs"], strict=True)
    return torch.tensor([conformal_quantile(scores, level, graphs) for scores, graphs in pairs]).double()


def summarize_conformal(scores: Tensor, folds: Tensor, k: int) -> dict:
    """The scores (n, T) of test graphs, NaN where a target is unknown, as a record for summary.json, and the coverage.

    Args:
        scores: of each graph and target.
        folds: (n,) number of the fold that predicted the graph.
        k: folds of a repeat, which have different test graphs.
    """
    known = [column[~column.isnan()] for column in scores.T]
    coverage = [held_out_coverage(column, folds, k, LEVEL) for column in scores.T]
    return {
        "graphs": [len(column) for column in known],
        "scores": [thin_scores(column) for column in known],
        "level": LEVEL,
        "coverage": [None if math.isnan(value) else value for value in coverage],
    }


def held_out_coverage(scores: Tensor, folds: Tensor, k: int, level: float) -> float:
    """Part of the graphs whose score is at most the quantile of the other folds of the same repeat; NaN if there are none.

    A single test set is taken as two, of its even and its odd graphs.
    """
    known = ~scores.isnan()
    if len(folds.unique()) == 1:
        folds, k = torch.arange(len(folds)) % 2, 2
    scores, folds = scores[known], folds[known]
    repeats, covered = folds // k, 0
    for fold in folds.unique():
        tested = folds == fold
        others = scores[(repeats == fold // k) & ~tested].sort().values.tolist()
        covered += int((scores[tested] <= conformal_quantile(others, level)).sum())
    return covered / len(scores) if len(scores) else math.nan
