"""Bounds on scores: equal to the best of all predictions, found by trying them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from small_graphs import build

from egin_dgl.data import bonds
from egin_dgl.evaluation.metrics import MULTILABEL, REGRESSION
from egin_dgl.ewl import audit
from egin_dgl.ewl.bounds import bounds_per_target, highest_accuracy, highest_auroc, lowest_rmse

NAN = np.nan
PATH = build(3, [(0, 1), (1, 2)], [0, 0, 0], [0, 1])
RING = build(3, [(0, 1), (1, 2), (2, 0)], [0, 0, 0], [0, 0, 0])


@pytest.mark.parametrize("seed", range(8))
def test_no_ranking_of_sets_has_a_higher_auroc(seed):
    generator = np.random.default_rng(seed)
    sets, labels = generator.integers(0, 4, 14) * 3, generator.integers(0, 2, 14)
    if labels.min() == labels.max():
        labels[0] = 1 - labels[0]
    truth = torch.tensor(labels)[:, None].double()
    # All orders of four sets, with ties.
    scores = [
        torch.tensor(one, dtype=torch.float64)[sets // 3][:, None] for one in product(range(4), repeat=4)
    ]
    assert highest_auroc(sets, labels) == pytest.approx(
        max(MULTILABEL["auroc"](s, truth) for s in scores), abs=1e-12
    )


@pytest.mark.parametrize("seed", range(4))
def test_no_prediction_of_sets_has_a_lower_rmse(seed):
    generator = np.random.default_rng(seed)
    sets, values = generator.integers(0, 3, 12), generator.integers(0, 5, 12).astype(float)
    known = np.isin(np.arange(3), sets)
    # Least squares over one value for each set.
    design = (sets[:, None] == np.arange(3))[:, known].astype(float)
    best = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    found = REGRESSION["rmse"](torch.tensor(best)[:, None], torch.tensor(values)[:, None])
    assert lowest_rmse(sets, values) == pytest.approx(found, abs=1e-12)
    tried = (np.array(one)[sets] for one in product(np.linspace(0, 4, 9), repeat=3))
    assert lowest_rmse(sets, values) <= min(np.sqrt(np.mean((one - values) ** 2)) for one in tried) + 1e-12


def test_no_prediction_of_sets_has_a_higher_accuracy():
    generator = np.random.default_rng(0)
    sets, classes = generator.integers(0, 3, 20), generator.integers(0, 3, 20)
    tried = max(np.mean(np.array(one)[sets] == classes) for one in product(range(3), repeat=3))
    assert highest_accuracy(sets, classes) == pytest.approx(tried, abs=1e-12)


def test_equal_values_deviate_by_exactly_zero():
    assert lowest_rmse(np.zeros(3, dtype=int), np.full(3, 0.1)) == 0.0


def test_missing_values_leave_a_graph_out_of_one_target():
    sets = np.array([0, 0, 0, 1, 1])
    targets = np.array([[1.0, 3, NAN], [2, NAN, NAN], [NAN, 3, NAN], [5, 1, NAN], [5, NAN, NAN]])
    assert bounds_per_target(lowest_rmse, sets, targets) == (pytest.approx(np.sqrt(2 * 0.25 / 4)), 0.0, None)
    labels = np.array([[1.0, 1], [0, 1], [NAN, 1], [0, NAN], [0, 1]])
    # Of the target 0: a positive and a negative in one set, two negatives in the other; the target 1 has positives only.
    assert bounds_per_target(highest_auroc, sets, labels) == (pytest.approx(5 / 6), None)


def test_audit_of_a_regression():
    values = np.array([[1.0, 4], [3, 4], [7, NAN], [8, 5]])
    found = audit([PATH, PATH, RING, RING], labels=values, depth=1)
    level = found.level("e-wl", 1)
    expected = np.sqrt([(1 + 1 + 0.25 + 0.25) / 4, 0])
    assert found.metric == "rmse" and level.per_target == pytest.approx(tuple(expected))
    assert level.bound == pytest.approx(expected.mean())
    # Node labels alone do not distinguish them at depth 0.
    assert found.level("1-wl", 0).per_target[0] == pytest.approx(np.std([1, 3, 7, 8]))
    assert found.duplicates == ((0, 1), (2, 3)) and found.opposite == ((0, 1), (2, 3))
    assert audit([PATH, PATH, RING, RING], labels=values[:, 1:], depth=0).opposite == ()


def test_audit_of_a_multilabel_dataset():
    data = bonds(graphs=40)
    alternating = data.labels.double()
    missing = alternating.clone()
    missing[::5] = NAN
    several = torch.stack([alternating, missing, 1 - alternating], dim=1)
    info = replace(data.info, task="multilabel", classes=0, class_names=(), target_names=("a", "b", "c"))
    found = audit(replace(data, labels=several, info=info), depth=1)
    assert found.metric == "auroc" and found.targets == ("a", "b", "c")
    assert found.level("1-wl", 1).per_target[0] == 0.5 and found.level("e-wl", 1).per_target == (
        1.0,
        1.0,
        1.0,
    )
    assert found.level("1-wl", 1).bound >= 0.5 and not found.opposite


def test_bounds_hold_for_every_prediction_and_grow_with_depth(molecules):
    from egin_dgl.data.readers.smiles import load_smiles

    found = audit(load_smiles(molecules("esol"), target="log_solubility", cache=False), depth=3)
    for method in ("1-wl", "e-wl"):
        bounds = [found.level(method, depth).bound for depth in range(4)]
        assert bounds == sorted(bounds, reverse=True) and bounds[0] > bounds[-1]
    assert all(found.level("e-wl", d).bound <= found.level("1-wl", d).bound for d in range(4))
    assert found.opposite
