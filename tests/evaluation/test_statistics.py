import numpy as np
import pytest
from scipy import stats

from egin_dgl.evaluation.statistics import holm, interval, paired_test, rank_test

SCORES = [0.9, 0.85, 0.8, 0.95, 0.7, 0.88, 0.91, 0.79, 0.84, 0.9]


def test_without_correction_interval_and_test_are_students_t():
    other = [0.85, 0.86, 0.75, 0.9, 0.72, 0.8, 0.9, 0.7, 0.8, 0.85]
    student = stats.t.interval(0.95, 9, np.mean(SCORES), stats.sem(SCORES))
    assert interval(SCORES, 0) == pytest.approx(student)
    paired = stats.ttest_rel(SCORES, other)
    result = paired_test(SCORES, other, 0)
    assert (result.t, result.p) == pytest.approx((paired.statistic, paired.pvalue))
    assert (result.low, result.high) == pytest.approx(tuple(paired.confidence_interval()))


def test_correction_widens_by_the_ratio_of_test_and_training_set():
    plain, corrected = (np.ptp(interval(SCORES, ratio)) for ratio in (0, 1 / 9))
    assert corrected / plain == pytest.approx(np.sqrt((1 / 10 + 1 / 9) / (1 / 10)))


def test_interval_contains_zero_exactly_if_p_is_above_five_percent():
    generator = np.random.default_rng(0)
    for _ in range(200):
        one, two = generator.normal(0.8, 0.05, 10), generator.normal(0.83, 0.05, 10)
        result = paired_test(one, two, 1 / 9)
        assert (result.low <= 0 <= result.high) == (result.p >= 0.05)


def test_corrected_test_rarely_rejects_equal_models():
    """Two answers of equal quality, by chance alone, on random splits that share most of their graphs."""
    generator = np.random.default_rng(1)
    found = {0: 0, 1 / 9: 0}
    for _ in range(400):
        right = generator.random((2, 100)) < 0.8  # of each of 100 graphs, whether each model is right
        tests = [generator.permutation(100)[:10] for _ in range(30)]
        scores = [[model[test].mean() for test in tests] for model in right]
        for ratio in found:
            found[ratio] += paired_test(*scores, ratio).p < 0.05
    assert found[0] / 400 > 0.2 > 0.1 > found[1 / 9] / 400


def test_no_interval_for_a_single_value():
    assert interval([0.5], 0.1) is None
    assert paired_test([0.5, 0.6], [0.5, 0.6], 0.1).p == 1
    assert paired_test([0.75, 1.0], [0.5, 0.75], 0.1).p == 0
    with pytest.raises(ValueError, match="longer"):
        paired_test([1, 2], [1, 2, 3], 0.1)


def test_holm_adjusts_for_the_number_of_comparisons():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


def test_scores_that_differ_by_rounding_only_are_equal():
    thirds = [number / 3 for number in (1, 2, 1, 2)]
    for noise in (1e-16, -1e-16, 3e-17):
        noisy = [score + noise for score in thirds]
        result = paired_test(noisy, thirds, 1 / 9)
        assert (result.difference, result.t, result.p) == (0, 0, 1)
    balanced = paired_test(
        [0.3, 0.0, 0.0], [0.0, 0.1, 0.2], 1 / 9
    )  # 0.3 − 0.1 − 0.2 is not 0 in floating point
    assert (balanced.difference, balanced.t, balanced.p) == (0, 0, 1)


def test_ranks_over_datasets():
    scores = [[0.9, 0.8, 0.7], [0.6, 0.5, 0.5], [0.9, 0.8, 0.7]]
    result = rank_test(scores)
    assert result.ranks == pytest.approx([1, 6.5 / 3, 8.5 / 3])
    assert result.p == pytest.approx(stats.friedmanchisquare(*np.transpose(scores)).pvalue)
    z = (result.ranks[2] - 1) / np.sqrt(3 * 4 / 18)
    assert result.p_holm[1] == pytest.approx(2 * 2 * stats.norm.sf(z))
    assert rank_test([[0.5] * 3] * 2).p == 1
