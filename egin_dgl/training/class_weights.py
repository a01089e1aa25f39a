"""What an epoch is chosen by on the validation part, and what the loss of a skewed set weighs."""

import math

import torch
from torch import Tensor

from egin_dgl.evaluation.metrics import METRICS


def selection_score(name: str, logits: Tensor, labels: Tensor) -> float:
    """The metric called `name` of the validation part; NaN for an empty part, or where it is not defined."""
    if len(labels) == 0:
        return math.nan
    return METRICS[name](logits, labels)


def balanced_weights(labels: Tensor, classes: int) -> Tensor:
    """w_c = n / (C n_c), C the classes that occur: each weighs the same in all, and the mean weight of a graph is 1."""
    counts = torch.bincount(labels, minlength=classes).float()
    present = counts > 0
    weights = torch.zeros(classes, device=labels.device)
    weights[present] = len(labels) / (present.sum() * counts[present])
    return weights
