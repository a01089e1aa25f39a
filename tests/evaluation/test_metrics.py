import math
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp
from sklearn import metrics as sk

from egin_dgl.evaluation.metrics import MULTICLASS, compute_all_metrics
from egin_dgl.evaluation.multiclass import auroc, average_precision, margin, margins
from egin_dgl.tasks.multiclass import balanced_class_weights

LOSSES = ("log_loss", "brier", "ece")


def sample(classes, present, n=200, scale=1.0):
    generator = torch.Generator().manual_seed(classes)
    labels = torch.tensor(present)[torch.randint(len(present), (n,), generator=generator)]
    logits = torch.randn(n, classes, generator=generator) + 1.5 * torch.eye(classes)[labels]
    logits[:, [c for c in range(classes) if c not in present]] -= 50  # never predicted, as never seen
    return scale * logits, labels


def reference(logits, labels):
    """By scikit-learn; calibration error, which it has not, by its definition."""
    z, truth = logits.double().numpy(), labels.numpy()
    predicted, classes = z.argmax(axis=1), z.shape[1]
    present = np.unique(truth)[1:] if classes == 2 else np.unique(truth)
    margins = {c: z[:, c] - logsumexp(np.delete(z, c, axis=1), axis=1) for c in present}
    p = np.exp(log_softmax(z, axis=1))
    true = np.eye(classes)[truth]
    return {
        "accuracy": sk.accuracy_score(truth, predicted),
        "balanced_accuracy": sk.recall_score(
            truth, predicted, labels=np.unique(truth), average="macro", zero_division=0
        ),
        "f1_macro": sk.f1_score(truth, predicted, average="macro", zero_division=0),
        "mcc": sk.matthews_corrcoef(truth, predicted),
        "auroc": np.mean([sk.roc_auc_score(truth == c, margins[c]) for c in present]),
        "average_precision": np.mean([sk.average_precision_score(truth == c, margins[c]) for c in present]),
        "log_loss": -log_softmax(z, axis=1)[np.arange(len(truth)), truth].mean(),
        "brier": sk.mean_squared_error(true, p) * (1 if classes == 2 else classes),
        "ece": calibration_error(p, predicted == truth),
    }


def calibration_error(p, correct):
    confidence, error = p.max(axis=1), 0.0
    for b in range(15):
        inside = (b / 15 < confidence) & (confidence <= (b + 1) / 15)
        if inside.any():
            error += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    return error


@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize(
    ("classes", "present"),
    [(2, [0, 1]), (5, [0, 1, 2, 3, 4]), (6, [1, 3, 4]), (30, list(range(30)))],
)
def test_metrics_equal_scikit_learn_with_absent_classes(classes, present, scale):
    logits, labels = sample(classes, present, scale=scale)
    assert compute_all_metrics(MULTICLASS, logits, labels) == pytest.approx(
        reference(logits, labels), rel=1e-12, abs=1e-12
    )


@st.composite
def scored_graphs(draw):
    """Two or more classes; repeated graphs give ties, others differ by more than rounding."""
    classes, different, n = draw(st.integers(2, 6)), draw(st.integers(1, 8)), draw(st.integers(2, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.sampled_from([0.1, 1.0, 30.0, 1000.0])) * rng.standard_normal((different, classes))
    labels = st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)
    truth = draw(labels.filter(lambda ys: len(set(ys)) > 1))
    return torch.from_numpy(rows[rng.integers(different, size=n)]).float(), torch.tensor(truth)


@given(scored_graphs())
@settings(max_examples=50, deadline=None)
def test_metrics_equal_scikit_learn_with_ties_and_large_margins(graphs):
    assert compute_all_metrics(MULTICLASS, *graphs) == pytest.approx(reference(*graphs), rel=1e-12, abs=1e-12)


def test_saturated_logits_are_ranked():
    logits, labels = torch.tensor([[0.0, 20], [0, 25], [0, 18], [0, -3]]), torch.tensor([0, 1, 0, 0])
    assert auroc(logits, labels) == average_precision(logits, labels) == 1.0
    assert auroc(-logits, labels) == 0.0


def test_margin_does_not_depend_on_the_order_of_other_logits():
    """The order of a floating-point sum changes its last digit."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        own, others = rng.standard_normal(), rng.standard_normal(5)
        logits = torch.tensor(np.array([[own, *rng.permutation(others)] for _ in range(8)])).float()
        assert margin(logits, 0).unique().numel() == 1
        assert margins(logits)[:, 0].unique().numel() == 1


def test_margins_of_all_classes_are_those_of_each():
    rng = np.random.default_rng(0)
    for classes, scale in ((2, 1.0), (3, 1000.0), (7, 1.0), (300, 30.0)):
        logits = torch.tensor(scale * rng.standard_normal((20, classes))).float()
        logits[:5] = logits[:5].round()  # equal logits
        each = torch.stack([margin(logits, c) for c in range(classes)], dim=1)
        torch.testing.assert_close(margins(logits), each, rtol=1e-12, atol=1e-12)


def test_a_thousand_classes_are_ranked_in_seconds():
    """To sort all logits for each class takes half a minute."""
    logits, labels = sample(1000, list(range(1000)), n=2000)
    start = time.perf_counter()
    assert 0.8 < auroc(logits, labels) < 0.9
    assert time.perf_counter() - start < 10


def test_log_loss_is_not_clipped():
    logits = torch.tensor([[0.0, 1000.0], [0.0, -1000.0]])
    wrong, right = (
        compute_all_metrics(MULTICLASS, logits, torch.tensor(labels)) for labels in ([0, 1], [1, 0])
    )
    assert [wrong[name] for name in LOSSES] == [1000, 1, 1]
    assert [right[name] for name in LOSSES] == [0, 0, 0]


def test_ece_is_the_gap_between_confidence_and_accuracy():
    logits = torch.tensor([[0.0, math.log(3.0)]]).repeat(100, 1)  # 75 % sure of the second class
    for hits, error in ((75, 0.0), (100, 0.25), (50, 0.25)):
        values = compute_all_metrics(MULTICLASS, logits, torch.tensor([1] * hits + [0] * (100 - hits)))
        assert values["ece"] == pytest.approx(error, abs=1e-6)
    coin = compute_all_metrics(MULTICLASS, torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]))
    assert [coin[name] for name in LOSSES] == pytest.approx([math.log(2), 0.25, 0])


def test_majority_prediction_is_good_by_accuracy_only():
    labels = torch.tensor([0] * 95 + [1] * 5)
    logits = torch.tensor([[1.0, 0.0]]).repeat(100, 1)
    values = compute_all_metrics(MULTICLASS, logits, labels)
    assert values["accuracy"] == pytest.approx(0.95)
    assert values["balanced_accuracy"] == values["auroc"] == pytest.approx(0.5)
    assert values["mcc"] == 0 and values["average_precision"] == pytest.approx(0.05)


def test_ranking_metrics_are_nan_for_one_class_or_nan_logits():
    one = compute_all_metrics(MULTICLASS, torch.randn(5, 3), torch.zeros(5, dtype=torch.long))
    lost = compute_all_metrics(MULTICLASS, torch.full((2, 2), math.nan), torch.tensor([0, 1]))
    for values in (one, lost):
        assert math.isnan(values["auroc"]) and math.isnan(values["average_precision"])
    assert all(math.isfinite(one[name]) for name in LOSSES)


def test_a_metric_of_an_empty_set_is_undefined():
    logits, labels = sample(3, [0, 1, 2])
    for name, metric in MULTICLASS.items():
        assert metric.is_loss == (name in LOSSES) == metric.needs_probabilities
        assert math.isnan(metric(logits[:0], labels[:0]))


def test_balanced_weights_give_classes_equal_total_weight():
    labels = torch.tensor([0] * 90 + [2] * 10)
    weights = balanced_class_weights(labels, 4)
    assert weights[labels].mean() == pytest.approx(1)
    assert weights[0] * 90 == pytest.approx(float(weights[2] * 10))
    assert weights[1] == weights[3] == 0
