"""Metrics of several targets with missing values, against scikit-learn and scipy on the known ones."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn import metrics as sk

from egin_dgl.evaluation.metrics import METRICS, MULTICLASS, MULTILABEL, REGRESSION

PER_LABEL = {
    "auroc": lambda y, z: sk.roc_auc_score(y, z),
    "average_precision": lambda y, z: sk.average_precision_score(y, z),
    "accuracy": lambda y, z: sk.accuracy_score(y, z > 0),
    "balanced_accuracy": lambda y, z: sk.balanced_accuracy_score(y, z > 0),
    "log_loss": lambda y, z: sk.log_loss(y, 1 / (1 + np.exp(-z))),
    "brier": lambda y, z: sk.brier_score_loss(y, 1 / (1 + np.exp(-z))),
}
PER_VALUE = {
    "rmse": sk.root_mean_squared_error,
    "mae": sk.mean_absolute_error,
    "r2": sk.r2_score,
    "spearman": lambda y, p: spearmanr(y, p).statistic,
}


def sample(rounded=False, n=60):
    rng = np.random.default_rng(3)
    predicted = rng.normal(size=(n, 3))
    targets = predicted + rng.normal(size=(n, 3))
    if rounded:  # many ties
        predicted, targets = predicted.round(), targets.round()
    missing = rng.random((n, 3)) < 0.3
    return predicted, targets, missing


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(
    ("metrics", "references", "binary"), [(MULTILABEL, PER_LABEL, True), (REGRESSION, PER_VALUE, False)]
)
def test_each_target_equals_the_reference_on_its_known_graphs(metrics, references, binary, rounded):
    predicted, targets, missing = sample(rounded)
    targets = (targets > 0).astype(float) if binary else targets
    masked = np.where(missing, np.nan, targets)
    assert list(metrics) == list(references)
    for name, reference in references.items():
        known = [reference(targets[~m, t], predicted[~m, t]) for t, m in enumerate(missing.T)]
        arguments = torch.from_numpy(predicted), torch.from_numpy(masked)
        assert metrics[name].per_target(*arguments) == pytest.approx(known, rel=1e-12)
        assert metrics[name](*arguments) == pytest.approx(np.mean(known), rel=1e-12)


def test_undefined_targets_are_left_out_of_the_mean():
    labels = torch.tensor([[0, 0, math.nan], [1, 0, math.nan]], dtype=torch.float64)
    logits = torch.tensor([[-1.0, 2, 0], [1, 3, 0]])
    values = MULTILABEL["auroc"].per_target(logits, labels)
    assert values[0] == 1 and math.isnan(values[1]) and math.isnan(values[2])
    assert MULTILABEL["auroc"](logits, labels) == 1
    assert math.isnan(MULTILABEL["auroc"](logits[:, 1:], labels[:, 1:]))
    assert math.isnan(REGRESSION["r2"](logits[:, :1], torch.ones(2, 1)))
    assert math.isnan(REGRESSION["rmse"](logits[:0], labels[:0]))


def test_a_name_has_one_direction_and_unit_in_every_task():
    for metrics in (MULTICLASS, MULTILABEL, REGRESSION):
        for name, metric in metrics.items():
            known = METRICS[name]
            assert (metric.is_loss, metric.is_fraction) == (known.is_loss, known.is_fraction)
            assert metric.best([1.0, 2.0]) == (1 if metric.is_loss else 2)
            assert metric.gain(2.0) == (-2 if metric.is_loss else 2)
