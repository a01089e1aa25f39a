"""Temperature scaling."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from egin_dgl.evaluation.calibration import MAX_TEMPERATURE, fit_temperature, probabilities
from egin_dgl.evaluation.multiclass import ece


def drawn(graphs, temperature, classes=3, seed=0):
    """Logits, and labels drawn from softmax(logits / temperature)."""
    random = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(graphs, classes, generator=random)
    labels = torch.multinomial((logits / temperature).softmax(dim=1), 1, generator=random)[:, 0]
    return logits, labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_fit_recovers_the_temperature(temperature):
    logits, labels = drawn(20_000, temperature)
    assert fit_temperature(logits, labels) == pytest.approx(temperature, rel=0.05)


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
    assert 1 / MAX_TEMPERATURE <= fit_temperature(logits, labels) <= 1.05
    wrong = fit_temperature(logits, 1 - labels)
    assert 0.95 <= wrong <= MAX_TEMPERATURE


def test_log_loss_does_not_increase_on_the_fitted_set():
    for seed in range(20):
        logits, labels = drawn(18, 1.0 + seed / 4, seed=seed)
        found = fit_temperature(logits, labels)
        before, after = (cross_entropy(logits.double() / t, labels) for t in (1.0, found))
        assert after <= before + 1e-9


def test_scaling_keeps_the_predicted_class():
    logits, labels = drawn(100, 2.0)
    found = probabilities(logits, fit_temperature(logits, labels))
    assert torch.equal(found.argmax(dim=1), logits.argmax(dim=1))
    torch.testing.assert_close(found.sum(dim=1), torch.ones(100, dtype=torch.float64))
