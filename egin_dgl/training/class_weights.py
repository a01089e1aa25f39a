"""What the loss of a skewed set weighs."""

import torch
from torch import Tensor


def balanced_class_weights(labels: Tensor, classes: int) -> Tensor:
    """w_c = n / (C n_c), C the classes that occur: each weighs the same in all, and the mean weight of a graph is 1."""
    counts = torch.bincount(labels, minlength=classes).float()
    present = counts > 0
    weights = torch.zeros(classes, device=labels.device)
    weights[present] = len(labels) / (present.sum() * counts[present])
    return weights
