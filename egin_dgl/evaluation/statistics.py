"""Confidence intervals of a mean over folds and paired tests between models, from per-fold scores.

Folds share most of their training graphs, so their scores are not independent, and the textbook variance of a mean,
s²/n, is too small. Nadeau & Bengio (2003) correct it to s² (1/n + test/train), with the sizes of test and training set.
Intervals and tests use the same correction, so they never contradict each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit  # scipy.stats takes half a second to import

CONFIDENCE = 0.95
DECIMALS = 12  # of differences between scores; their means over epochs have rounding errors of about 1e-16


@dataclass(frozen=True)
class PairedTest:
    """Corrected resampled t-test of two models on the same folds: mean difference, its 95 % interval, t and p."""

    difference: float
    low: float
    high: float
    t: float
    p: float
    folds: int


def standard_error(values: Sequence[float], test_to_train: float) -> float:
    """√(s² (1/n + test/train)), s² with ddof 1."""
    return float(np.sqrt(np.var(values, ddof=1) * (1 / len(values) + test_to_train)))


def interval(values: Sequence[float], test_to_train: float) -> tuple[float, float] | None:
    """95 % interval of the mean by Student's t; None for fewer than two values."""
    if len(values) < 2:
        return None
    quantile = stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)
    mean, width = float(np.mean(values)), float(quantile * standard_error(values, test_to_train))
    return mean - width, mean + width


def paired_test(first: Sequence[float], second: Sequence[float], test_to_train: float) -> PairedTest:
    """Test whether `first` and `second`, scores on the same folds in the same order, have the same mean.

    t = mean(d) / √(s² (1/n + test/train)) with d = first − second, on n − 1 degrees of freedom, two-sided. Differences are
    rounded to 12 decimals: scores that are equal up to rounding give t = 0 and p = 1.
    """
    differences = [round(float(a - b), DECIMALS) for a, b in zip(first, second, strict=True)]
    bounds = interval(differences, test_to_train)
    if bounds is None:
        raise ValueError(f"a paired test needs at least two folds, got {len(differences)}")
    mean, error = round(float(np.mean(differences)), DECIMALS), standard_error(differences, test_to_train)
    with np.errstate(divide="ignore", invalid="ignore"):  # equal differences on all folds: t is infinite
        t = float(np.nan_to_num(np.divide(mean, error), nan=0.0, posinf=np.inf, neginf=-np.inf))
    p = float(2 * stdtr(len(differences) - 1, -abs(t)))
    return PairedTest(mean, *bounds, t, p, len(differences))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted p-values for multiple comparisons, in the given order."""
    values, order = np.asarray(p_values), np.argsort(p_values)
    adjusted = np.empty(len(values))
    bounds = np.minimum(1.0, values[order] * np.arange(len(values), 0, -1))
    adjusted[order] = np.maximum.accumulate(bounds)
    return adjusted.tolist()


@dataclass(frozen=True)
class RankTest:
    """Friedman test over datasets: mean rank of each model (1 is best), p, and p of each model against the first by Holm."""

    ranks: list[float]
    p: float
    p_holm: list[float]


def rank_test(scores: Sequence[Sequence[float]]) -> RankTest:
    """Test whether models differ, from scores (datasets, models), larger is better; ties share their mean rank.

    Each further model is compared with the first one by z = (R − R₁) / √(k(k+1)/6N) (Demšar 2006), adjusted by Holm.
    """
    from scipy import stats  # see above

    values = np.asarray(scores, dtype=np.float64)
    datasets, models = values.shape
    if datasets < 2 or models < 3:
        raise ValueError(f"a Friedman test needs two datasets and three models, got {values.shape}")
    ranks = stats.rankdata(-values, axis=1).mean(axis=0)
    z = (ranks[1:] - ranks[0]) / np.sqrt(models * (models + 1) / (6 * datasets))
    with np.errstate(divide="ignore", invalid="ignore"):  # all models tie on all datasets: NaN
        p = float(stats.friedmanchisquare(*values.T).pvalue)
    return RankTest(ranks.tolist(), 1.0 if np.isnan(p) else p, holm((2 * stats.norm.sf(abs(z))).tolist()))


def practical_verdict(low: float, high: float, region: float) -> str:
    """What a 95 % interval says of a difference that counts only beyond ± `region`, the region of practical equivalence.

    "better" or "worse" if the interval lies beyond the region, "equivalent" if it lies inside, else "undecided".

    >>> [practical_verdict(*ends, region=1) for ends in ((1.5, 4), (-3, -1.5), (-0.5, 0.5), (-0.5, 4))]
    ['better', 'worse', 'equivalent', 'undecided']
    """
    if low > region:
        return "better"
    if high < -region:
        return "worse"
    return "equivalent" if -region <= low and high <= region else "undecided"
