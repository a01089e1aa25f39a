"""Temperature scaling."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch.nn.functional import cross_entropy

from egin_dgl.data.splits import Folds
from egin_dgl.evaluation.calibration import (
    MAX_TEMPERATURE,
    fit_temperature,
    fold_temperature,
    golden_section,
    held_out_temperatures,
    pooled_temperature,
    summarize_calibration,
)
from egin_dgl.evaluation.history import EpochRecord, FoldResult
from egin_dgl.evaluation.multiclass import ece
from egin_dgl.tasks import Multiclass


def drawn(graphs, temperature, classes=3, seed=0):
    """Logits, and labels drawn from softmax(logits / temperature)."""
    random = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(graphs, classes, generator=random)
    labels = torch.multinomial((logits / temperature).softmax(dim=1), 1, generator=random)[:, 0]
    return logits, labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_fit_recovers_the_temperature(temperature):
    logits, labels = drawn(20_000, temperature)
    assert fit_temperature(logits, labels, minimum=0.1) == pytest.approx(temperature, rel=0.05)
    assert fit_temperature(logits, labels) == pytest.approx(max(1, temperature), rel=0.05)


@pytest.mark.parametrize("classes", [2, 3, 30])
def test_overconfident_logits_are_calibrated_on_held_out_graphs(classes):
    logits, labels = drawn(4_000, 5.0, classes)
    half = slice(0, 2_000), slice(2_000, 4_000)
    found = fit_temperature(logits[half[0]], labels[half[0]])
    scaled = logits[half[1]] / found
    assert ece(scaled, labels[half[1]]) < 0.5 * ece(logits[half[1]], labels[half[1]])


@pytest.mark.parametrize("graphs", [1, 5, 18, 1000])
@pytest.mark.parametrize("gap", [0.01, 1.0, 30.0, 1e4])
def test_temperature_is_bounded_without_errors(graphs, gap):
    labels = torch.arange(graphs) % 2
    logits = gap * torch.nn.functional.one_hot(labels, 2).float()
    assert 1 / MAX_TEMPERATURE <= fit_temperature(logits, labels, minimum=1 / MAX_TEMPERATURE) <= 1.05
    wrong = fit_temperature(logits, 1 - labels)
    assert 0.95 <= wrong <= MAX_TEMPERATURE


def test_log_loss_does_not_increase_on_the_fitted_set():
    for seed in range(20):
        logits, labels = drawn(18, 1.0 + seed / 4, seed=seed)
        found = fit_temperature(logits, labels)
        before, after = (cross_entropy(logits.double() / t, labels) for t in (1.0, found))
        assert after <= before + 1e-9


def test_temperature_is_shrunk_towards_one_where_graphs_are_few():
    logits, labels = drawn(20_000, 3.0)
    found = [math.log(fit_temperature(logits[:n], labels[:n])) for n in (2, 20, 20_000)]
    assert 0 <= found[0] < 0.5 * found[2] and abs(found[1]) < found[2] and found[2] > math.log(2.9)


def test_calibrated_logits_are_left_alone_but_for_one_set_in_twenty():
    found = [fit_temperature(*drawn(300, 1.0, seed=seed), penalty=1e-6) for seed in range(200)]
    assert 0.9 <= found.count(1.0) / len(found) <= 0.99
    logits, labels = drawn(300, 1.5)
    assert fit_temperature(logits, labels) > 1.2


K, SIZE = 5, 20


@pytest.fixture
def cross_validation():
    """Folds of one run: test set of fold f is the validation set of fold f - 1."""
    logits, labels = drawn(K * SIZE, 3.0)
    folds = Folds("drawn", 0, "", K, tuple(np.arange(K * SIZE).reshape(K, SIZE)))
    splits = {fold: folds.split(fold, True) for fold in range(K)}
    history = [EpochRecord(1, *[0.5] * 9, monitor_score=0.5, monitor_loss=0.5)]
    results = [
        FoldResult(
            fold=fold,
            history=history,
            test_logits=logits[split.test].unsqueeze(0),
            test_labels=labels[split.test],
            parameters=1,
            validation_logits=logits[split.validation],
            validation_labels=labels[split.validation],
        )
        for fold, split in splits.items()
    ]
    return results, splits


def test_folds_share_a_temperature_fitted_without_the_graphs_it_is_applied_to(cross_validation):
    results, splits = cross_validation
    logits, labels = (
        torch.cat([getattr(r, f"validation_{key}") for r in results]) for key in ("logits", "labels")
    )
    assert pooled_temperature(results) == pytest.approx(fit_temperature(logits, labels))
    found = held_out_temperatures(results, splits)
    for fold in range(K):
        others = [results[other] for other in range(K) if other != (fold - 1) % K]
        assert found[fold] == pytest.approx(pooled_temperature(others))
    wrong = replace(results[0], validation_labels=(results[0].validation_labels + 1) % 3)
    changed = held_out_temperatures([wrong, *results[1:]], splits)
    assert [a == b for a, b in zip(changed, found, strict=True)] == [fold == 1 for fold in range(K)]
    record = summarize_calibration(results, splits)
    assert record["temperatures"] == found and record["temperature"] == pooled_temperature(results)
    assert record["log_loss"]["after"] < record["log_loss"]["before"]


def test_predictions_become_no_more_confident(cross_validation):
    """The validation sets have selected the epoch and look better than new graphs, which may also come from elsewhere."""
    results, _ = cross_validation
    modest = [replace(result, validation_logits=result.validation_logits / 9) for result in results]
    assert pooled_temperature(modest) == fold_temperature(modest[0]) == 1.0


def test_one_fold_takes_its_own_validation_set(cross_validation):
    results, splits = cross_validation
    assert held_out_temperatures(results[2:3], splits) == [fold_temperature(results[2])]


def test_no_temperature_without_validation_sets(cross_validation):
    results, splits = cross_validation
    bare = [replace(result, validation_logits=None) for result in results]
    assert pooled_temperature(bare) is None and summarize_calibration(bare, splits) is None


def test_scaling_keeps_the_predicted_class():
    logits, labels = drawn(100, 2.0)
    found = Multiclass.predict(logits, fit_temperature(logits, labels))
    assert torch.equal(found.argmax(dim=1), logits.argmax(dim=1))
    torch.testing.assert_close(found.sum(dim=1), torch.ones(100, dtype=torch.float64))


@pytest.mark.parametrize("center", [-8.0, -1.3, 0.0, 2.7, 8.0])
def test_golden_section_finds_what_scipy_finds(center):
    def cost(x):
        return (x - center) ** 4 + abs(x - center)

    expected = minimize_scalar(cost, bounds=(-4.0, 4.0), method="bounded", options={"xatol": 1e-7}).x
    assert golden_section(cost, -4.0, 4.0) == pytest.approx(expected, abs=1e-5)
