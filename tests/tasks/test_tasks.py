"""Losses, predictions and fitted state of the three tasks."""

import json
from typing import get_args

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

from egin_dgl.data import DatasetInfo
from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.tasks import TASKS, Multiclass, Multilabel, Regression
from egin_dgl.training.options import Monitor

INFO = {
    "multiclass": DatasetInfo(1, 1, 3, class_names=("a", "b", "c"), target_names=("y",)),
    "multilabel": DatasetInfo(1, 1, task="multilabel", target_names=("s", "t")),
    "regression": DatasetInfo(1, 1, task="regression", target_names=("s", "t")),
}
NAN = float("nan")


def labels_of(name, n=40):
    generator = torch.Generator().manual_seed(0)
    if name == "multiclass":
        return torch.randint(3, (n,), generator=generator)
    values = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    values = (values > 0).double() if name == "multilabel" else 300 + 7 * values
    values[torch.rand(n, 2, generator=generator) < 0.3] = NAN
    return values


@pytest.mark.parametrize("name", TASKS)
def test_a_model_that_minimises_the_loss_beats_the_constant(numbers, name):
    """Outputs are free parameters: the loss has its minimum where the main metric is perfect."""
    labels, task_class = labels_of(name), TASKS[name]
    task = task_class.fit(labels, INFO[name])
    outputs = torch.zeros(len(labels), INFO[name].outputs, requires_grad=True)
    optimizer = torch.optim.Adam([outputs], lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        task.loss(outputs, labels, weighted=True).backward()
        optimizer.step()
    best = task.main()(task.decode(outputs.detach()), labels)
    assert best == pytest.approx(0 if task.main().is_loss else 1, abs=0.01)
    assert task.metric("auto") is task.main()
    restored = task_class.from_dict(json.loads(json.dumps(task.to_dict())))
    assert torch.equal(restored.decode(outputs.detach()), task.decode(outputs.detach()))


def test_missing_labels_have_no_loss_and_no_gradient():
    for name in ("multilabel", "regression"):
        labels = labels_of(name)
        task = TASKS[name].fit(labels, INFO[name])
        outputs = torch.randn(len(labels), 2, requires_grad=True)
        task.loss(outputs, labels).backward()
        assert outputs.grad[labels.isnan()].eq(0).all() and outputs.grad[~labels.isnan()].ne(0).all()
        nothing = torch.full_like(labels, NAN)
        outputs.grad = None
        loss = task.loss(outputs, nothing)
        loss.backward()
        assert loss == 0 and outputs.grad.eq(0).all()


def test_losses_are_those_of_torch_where_everything_is_known():
    outputs = torch.randn(20, 3)
    classes, labels = torch.arange(20) % 3, (torch.randn(20, 3) > 0).double()
    assert Multiclass().loss(outputs, classes) == cross_entropy(outputs, classes)
    expected = binary_cross_entropy_with_logits(outputs, labels.float())
    assert Multilabel().loss(outputs, labels) == pytest.approx(expected.item())
    values = torch.randn(20, 3, dtype=torch.float64)
    task = Regression.fit(values, INFO["regression"])
    scaled = (values - values.mean(0)) / values.std(0, correction=0)
    assert task.loss(outputs, values).item() == pytest.approx(mse_loss(outputs, scaled.float()).item())
    absolute = Regression.fit(values, INFO["regression"], "mae").loss(outputs, values)
    assert absolute.item() == pytest.approx((outputs - scaled).abs().mean().item())


def test_regression_does_not_depend_on_the_unit():
    labels = labels_of("regression")
    kelvin, other = (Regression.fit(y, INFO["regression"]) for y in (labels, 1000 * labels - 7))
    outputs = torch.randn(len(labels), 2)
    assert kelvin.loss(outputs, labels).item() == pytest.approx(other.loss(outputs, 1000 * labels - 7).item())
    decoded = other.decode(outputs)
    assert torch.allclose((decoded + 7) / 1000, kelvin.decode(outputs))


def test_constant_and_unknown_targets_are_finite():
    labels = torch.tensor([[2.0, NAN], [2.0, NAN]], dtype=torch.float64)
    task = Regression.fit(labels, INFO["regression"])
    assert task.decode(torch.zeros(1, 2)).tolist() == [[2.0, 0.0]] and task.std.tolist() == [1, 1]


def test_balanced_weights_give_both_labels_of_a_target_the_same_weight():
    labels = torch.tensor([[0, 1], [0, NAN], [0, 0], [1, 0]], dtype=torch.float64)
    weights = Multilabel.fit(labels, INFO["multilabel"], balanced=True).weights
    counts = torch.tensor([[3, 2], [1, 1]])
    assert torch.allclose(weights * counts, torch.tensor([[2, 1.5], [2, 1.5]]))


def test_predictions_are_probabilities_or_values():
    logits = torch.randn(5, 3)
    assert torch.allclose(Multiclass.predict(logits).sum(dim=1), torch.ones(5, dtype=torch.float64))
    assert torch.equal(Multilabel.predict(logits), logits.double().sigmoid())
    assert torch.equal(Regression.predict(logits), logits.double())
    assert torch.equal(Multilabel.decide(logits), (Multilabel.predict(logits) > 0.5).long())
    hot = Multiclass.predict(logits, 1e6)
    assert np.allclose(hot, 1 / 3, atol=1e-5)


def test_every_metric_can_be_monitored():
    assert get_args(Monitor) == ("auto", *METRICS)


def test_a_wrong_metric_is_named_with_the_valid_ones():
    with pytest.raises(
        ConfigError, match="'rsme' is no metric of task=regression; valid: rmse, mae, r2, spearman"
    ):
        Regression.metric("rsme")


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("name", TASKS)
def test_a_graph_of_weight_two_counts_as_two_graphs(name, balanced):
    labels = labels_of(name, 10)
    task = TASKS[name].fit(labels, INFO[name], balanced=balanced)
    outputs = torch.randn(10, INFO[name].outputs, generator=torch.Generator().manual_seed(0))
    counts = torch.tensor([0, 1, 2, 3, 1, 1, 2, 0, 1, 1])
    repeated = task.loss(outputs.repeat_interleave(counts, 0), labels.repeat_interleave(counts, 0), True)
    weighted = task.loss(outputs, labels, True, counts.double())
    torch.testing.assert_close(weighted.float(), repeated.float())
    torch.testing.assert_close(
        task.loss(outputs, labels, True, torch.full((10,), 0.3)), task.loss(outputs, labels, True)
    )


@pytest.mark.parametrize("name", TASKS)
def test_logits_of_predictions_predict_the_same(name):
    logits = 5 * torch.randn(20, INFO[name].outputs, generator=torch.Generator().manual_seed(0)).double()
    predicted = TASKS[name].predict(logits)
    torch.testing.assert_close(TASKS[name].predict(TASKS[name].to_logits(predicted)), predicted)
