import math

import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from egin_dgl.training.metrics import METRICS, score
from egin_dgl.training.options import SELECT_BY
from egin_dgl.training.selection import balanced_weights, selection_score


def sample(classes, present, n=200):
    generator = torch.Generator().manual_seed(classes)
    labels = torch.tensor(present)[torch.randint(len(present), (n,), generator=generator)]
    logits = torch.randn(n, classes, generator=generator) + 1.5 * torch.eye(classes)[labels]
    logits[:, [c for c in range(classes) if c not in present]] -= 50  # never predicted, as never seen
    return logits, labels


def reference(logits, labels):
    predicted, truth = logits.argmax(dim=1).numpy(), labels.numpy()
    probabilities = logits.softmax(dim=1).numpy()
    present = np.unique(truth)[1:] if logits.shape[1] == 2 else np.unique(truth)
    return {
        "accuracy": sk.accuracy_score(truth, predicted),
        "balanced_accuracy": sk.balanced_accuracy_score(truth, predicted),
        "f1_macro": sk.f1_score(truth, predicted, average="macro"),
        "mcc": sk.matthews_corrcoef(truth, predicted),
        "auroc": np.mean([sk.roc_auc_score(truth == c, probabilities[:, c]) for c in present]),
        "average_precision": np.mean(
            [sk.average_precision_score(truth == c, probabilities[:, c]) for c in present]
        ),
    }


@pytest.mark.parametrize(("classes", "present"), [(2, [0, 1]), (5, [0, 1, 2, 3, 4]), (6, [1, 3, 4])])
def test_every_metric_is_scikit_learns_also_where_classes_are_absent(classes, present):
    logits, labels = sample(classes, present)
    assert score(logits, labels) == pytest.approx(reference(logits, labels), abs=1e-5)


def test_answering_the_majority_scores_well_only_in_accuracy():
    labels = torch.tensor([0] * 95 + [1] * 5)
    logits = torch.tensor([[1.0, 0.0]]).repeat(100, 1)
    values = score(logits, labels)
    assert values["accuracy"] == pytest.approx(0.95)
    assert values["balanced_accuracy"] == values["auroc"] == pytest.approx(0.5)
    assert values["mcc"] == 0 and values["average_precision"] == pytest.approx(0.05)


def test_one_class_only_leaves_ranking_metrics_undefined():
    values = score(torch.randn(5, 3), torch.zeros(5, dtype=torch.long))
    assert math.isnan(values["auroc"]) and math.isnan(values["average_precision"])


def test_any_metric_can_choose_the_epoch():
    assert tuple(METRICS) == SELECT_BY
    logits, labels = sample(3, [0, 1, 2])
    for name in SELECT_BY:
        assert selection_score(name, logits, labels) == score(logits, labels)[name]
    assert math.isnan(selection_score("mcc", logits[:0], labels[:0]))


def test_balanced_weights_give_every_class_the_same_say():
    labels = torch.tensor([0] * 90 + [2] * 10)
    weights = balanced_weights(labels, 4)
    assert weights[labels].mean() == pytest.approx(1)
    assert weights[0] * 90 == pytest.approx(float(weights[2] * 10))
    assert weights[1] == weights[3] == 0
