"""Class weights of the loss for imbalanced data."""

import torch
from torch import Tensor


def balanced_class_weights(labels: Tensor, classes: int) -> Tensor:
    """w_c = n / (C n_c) for the C classes that occur, 0 for others: all classes have the same total weight."""
    counts = torch.bincount(labels, minlength=classes).float()
    present = counts > 0
    weights = torch.zeros(classes, device=labels.device)
    weights[present] = len(labels) / (present.sum() * counts[present])
    return weights
