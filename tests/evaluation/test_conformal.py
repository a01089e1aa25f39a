"""Conformal quantiles, sets and intervals: their definition, guarantee, and how they are stored."""

import math

import numpy as np
import pytest
import torch

from egin_dgl.data import DatasetInfo
from egin_dgl.evaluation.conformal import (
    MAX_SCORES,
    conformal_quantile,
    conformal_quantiles,
    held_out_coverage,
    summarize_conformal,
    thin_scores,
)
from egin_dgl.tasks import Multiclass, Multilabel, Regression

NAN = float("nan")


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("n", [1, 9, 19, 20, 99, 100, 1234])
def test_the_quantile_is_that_of_numpy_on_the_scores_and_infinity(n, level):
    """The ⌈(n+1) level⌉-th smallest of n scores is the quantile of these and ∞ by the inverse of their distribution."""
    scores = np.random.default_rng(n).random(n)
    reference = np.quantile([*scores, math.inf], level, method="inverted_cdf")
    assert conformal_quantile(sorted(scores.tolist()), level) == reference


def test_stored_scores_are_few_and_never_too_small():
    scores = torch.rand(7919, generator=torch.Generator().manual_seed(0)).double()
    stored, ordered = thin_scores(scores), scores.sort().values.tolist()
    assert len(stored) == MAX_SCORES and stored == sorted(stored) and stored[-1] == ordered[-1]
    for level in np.arange(0.01, 1, 0.01):
        exact, found = conformal_quantile(ordered, level), conformal_quantile(stored, level, len(ordered))
        assert exact <= found <= conformal_quantile(ordered, min(level + 1 / MAX_SCORES, 0.9999))
    assert thin_scores(scores[:7]) == scores[:7].sort().values.tolist()


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_exchangeable_scores_are_covered_at_the_level(level):
    """Over many draws the mean coverage of a new score is at least the level, by at most 1 / (n + 1)."""
    random, n = np.random.default_rng(0), 39
    draws = random.standard_exponential((20_000, n + 1))
    covered = [new <= conformal_quantile(sorted(scores), level) for *scores, new in draws[:4000].tolist()]
    assert level - 0.02 < np.mean(covered) < level + 1 / (n + 1) + 0.02


def test_coverage_is_measured_by_the_other_folds_of_a_repeat():
    scores = torch.tensor([1.0, 2, 3, 4, 9, 9, 9, 9, 1, 1, 1, 1, 1, 1, 1, NAN]).double()
    folds = torch.arange(4).repeat_interleave(4)
    # Folds 0 and 1 are one repeat: all of fold 0 is below the 9 of fold 1, none of fold 1 below those of fold 0.
    assert held_out_coverage(scores, folds, 2, 0.6) == pytest.approx((4 + 0 + 7) / 15)
    single = held_out_coverage(torch.arange(100.0), torch.zeros(100, dtype=torch.int64), 10, 0.9)
    assert 0.85 < single < 0.95
    assert math.isnan(held_out_coverage(torch.full((3,), NAN), torch.arange(3), 3, 0.9))


def test_the_record_has_quantiles_per_target():
    scores = torch.rand(60, 2, generator=torch.Generator().manual_seed(0)).double()
    scores[::3, 1] = NAN
    record = summarize_conformal(scores, torch.arange(60) % 3, 3)
    assert record["graphs"] == [60, 40] and len(record["coverage"]) == 2
    expected = [conformal_quantile(sorted(scores[:, 0].tolist()), 0.8)]
    expected += [conformal_quantile(sorted(scores[~scores[:, 1].isnan(), 1].tolist()), 0.8)]
    assert conformal_quantiles(record, 0.8).tolist() == expected
    assert conformal_quantiles(record, 0.99).isinf().all()


def test_a_truth_is_in_its_set_where_its_score_is_at_most_the_quantile():
    random = torch.Generator().manual_seed(0)
    classes = DatasetInfo(1, 1, 3, class_names=("a", "b", "c"), target_names=("y",))
    p, y = torch.rand(50, 3, generator=random).double().softmax(1), torch.randint(3, (50,), generator=random)
    score = Multiclass.nonconformity(p, y)
    reference = np.where(p.argmax(1) == y, 0, 1 - p.numpy()[np.arange(50), y])
    assert np.allclose(score[:, 0], reference) and Multiclass.nonconformity(p, y - 9).isnan().all()
    (sets,) = Multiclass.conformal_columns(p, torch.tensor([0.6]), classes).values()
    assert all(sets) and len(set(sets)) > 3
    assert [("abc"[i] in one) for i, one in zip(y, sets, strict=True)] == (score[:, 0] <= 0.6).tolist()

    labels = DatasetInfo(1, 1, task="multilabel", target_names=("s", "t"))
    p, y = torch.rand(50, 2, generator=random).double(), torch.randint(2, (50, 2), generator=random).double()
    y[0] = NAN
    score, limits = Multilabel.nonconformity(p, y), torch.tensor([0.0, 0.7])
    assert score[0].isnan().all()
    columns = Multilabel.conformal_columns(p, limits, labels)
    assert list(columns) == ["set_s", "set_t"]
    assert set(columns["set_s"]) == {"0", "1"} and set(columns["set_t"]) == {"0", "1", "0|1"}
    for t, sets in enumerate(columns.values()):
        found = [str(int(v)) in one for v, one in zip(y[1:, t], sets[1:], strict=True)]
        assert found == (score[1:, t] <= limits[t]).tolist()

    values = DatasetInfo(1, 1, task="regression", target_names=("s", "t"))
    columns = Regression.conformal_columns(y, torch.tensor([1.0, math.inf]), values)
    assert list(columns) == ["low_s", "high_s", "low_t", "high_t"]
    assert columns["low_s"][1:] == (y[1:, 0] - 1).tolist() and set(columns["high_t"][1:]) == {math.inf}
