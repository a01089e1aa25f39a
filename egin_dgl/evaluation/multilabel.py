"""Metrics of multilabel classification, one value per target: logits (B, T), labels (B, T) of 0 and 1, NaN where missing.

A missing label leaves its graph out of the metric of its target alone. A metric is NaN for a target without labels, and
a ranking metric for one with labels of one kind. Every metric equals scikit-learn's on the graphs with a label.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from egin_dgl.evaluation.multiclass import auroc_by_rank, average_precision_by_rank
from egin_dgl.evaluation.per_target import over_known


def by_rank(metric: Callable[[Tensor, Tensor], Tensor], logits: Tensor, labels: Tensor) -> Tensor:
    """A metric of dense ranks, which needs labels of both kinds and finite logits."""

    def of_target(column: Tensor, truth: Tensor) -> Tensor:
        positive = truth > 0
        if positive.all() or not positive.any() or column.isnan().any():
            return torch.tensor(torch.nan)
        return metric(column.unique(return_inverse=True)[1], positive)

    return over_known(of_target, logits, labels)


def label_auroc(logits: Tensor, labels: Tensor) -> Tensor:
    # torchmetrics ranks by sigmoid, which ties saturated logits, and counts a target of one class as 0.
    return by_rank(auroc_by_rank, logits, labels)


def label_average_precision(logits: Tensor, labels: Tensor) -> Tensor:
    # torchmetrics ranks by sigmoid, as for auroc.
    return by_rank(average_precision_by_rank, logits, labels)


def label_accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    # torchmetrics: the same, in float32.
    return over_known(lambda z, y: ((z > 0) == (y > 0)).double().mean(), logits, labels)


def label_balanced_accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of the recalls of both classes, of those that occur."""

    def of_target(z: Tensor, y: Tensor) -> Tensor:
        correct = ((z > 0) == (y > 0)).double()
        recalls = [correct[y == label].mean() for label in y.unique()]
        return torch.stack(recalls).mean()

    return over_known(of_target, logits, labels)


def label_log_loss(logits: Tensor, labels: Tensor) -> Tensor:
    # torchmetrics has none.
    return over_known(lambda z, y: binary_cross_entropy_with_logits(z, y), logits, labels)


def label_brier(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of (p − y)²."""
    # torchmetrics has none.
    return over_known(lambda z, y: (z.sigmoid() - y).square().mean(), logits, labels)
