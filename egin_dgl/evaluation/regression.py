"""Metrics of regression, one value per target: predictions (B, T) and targets (B, T) in their units, NaN where missing.

A missing value leaves its graph out of the metric of its target alone. Values are computed in float64 and equal those of
scikit-learn and scipy; torchmetrics has the same ones in float32, and its Spearman correlation differs with ties.
"""

import torch
from torch import Tensor

from egin_dgl.evaluation.per_target import over_known


def rmse(predicted: Tensor, targets: Tensor) -> Tensor:
    """√ mean (ŷ − y)²."""
    return over_known(lambda p, y: (p - y).square().mean().sqrt(), predicted, targets)


def mae(predicted: Tensor, targets: Tensor) -> Tensor:
    """mean |ŷ − y|."""
    return over_known(lambda p, y: (p - y).abs().mean(), predicted, targets)


def r2(predicted: Tensor, targets: Tensor) -> Tensor:
    """1 − Σ (ŷ − y)² / Σ (y − mean y)²; NaN where all targets are equal."""

    def of_target(p: Tensor, y: Tensor) -> Tensor:
        total = (y - y.mean()).square().sum()
        return 1 - (p - y).square().sum() / total if total > 0 else torch.tensor(torch.nan)

    return over_known(of_target, predicted, targets)


def spearman(predicted: Tensor, targets: Tensor) -> Tensor:
    """Correlation of the ranks, ties sharing their mean rank; NaN where all predictions or all targets are equal."""

    def of_target(p: Tensor, y: Tensor) -> Tensor:
        ranks = torch.stack([mean_ranks(p), mean_ranks(y)])
        centred = ranks - ranks.mean(dim=1, keepdim=True)
        spread = centred.square().sum(dim=1).prod().sqrt()
        return (centred[0] * centred[1]).sum() / spread if spread > 0 else torch.tensor(torch.nan)

    return over_known(of_target, predicted, targets)


def mean_ranks(values: Tensor) -> Tensor:
    """Ranks from 1, ties sharing their mean rank."""
    _, rank, counts = values.unique(return_inverse=True, return_counts=True)
    return (counts.cumsum(0) - (counts - 1) / 2)[rank].double()
