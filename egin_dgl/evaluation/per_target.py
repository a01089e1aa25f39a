"""Metrics of several targets, some of them missing."""

from collections.abc import Callable

import torch
from torch import Tensor


def over_known(metric: Callable[[Tensor, Tensor], Tensor], predicted: Tensor, targets: Tensor) -> Tensor:
    """The metric of each target, (T,), over the graphs whose target is known; NaN where there is none.

    Predictions and targets are (B, T), a missing target is NaN. `metric` receives both as float64.
    """
    values = []
    for column, truth in zip(predicted.double().T, targets.double().T, strict=True):
        known = ~truth.isnan()
        found = metric(column[known], truth[known]) if known.any() else torch.tensor(torch.nan)
        values.append(found.double())
    return torch.stack(values)
