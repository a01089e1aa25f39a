r"""Probabilities that mean something: scores divided by a temperature that validation graphs ask for.

.. math:: p = \mathrm{softmax}(z / T), \quad
   T = \arg\min_T \sum_i -\log p_{i, y_i} + \tfrac12 (\log T)^2

A part whose graphs are all answered correctly would send T to zero, that is every probability to 0 or 1, for want of a
mistake. The second term, a prior as strong as about one graph, and bounds keep it from doing so.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from egin_dgl.evaluation.history import kept_record
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.evaluation.protocols import has_epochs
from egin_dgl.evaluation.result import FoldResult

LARGEST = 50.0  # and 1 / LARGEST is the smallest temperature


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """T for scores (n, classes) and classes (n,)."""
    from scipy.optimize import (
        minimize_scalar,  # here, as it takes a while to load and a run begins without it
    )

    scores = logits.double()

    def cost(log_t: float) -> float:
        return cross_entropy(scores / math.exp(log_t), labels, reduction="sum").item() + log_t**2 / 2

    bound = math.log(LARGEST)
    found = minimize_scalar(cost, bounds=(-bound, bound), method="bounded", options={"xatol": 1e-6})
    # Where sums are all but flat a search may end at a bound: no temperature is then as good.
    return math.exp(min((float(found.x), 0.0), key=cost))


def fold_temperature(result: FoldResult) -> float | None:
    """Of the model that a fold kept, by its validation part; None without one: its probabilities are not calibrated."""
    logits, labels = result.validation_logits, result.validation_labels
    if logits is None or labels is None or not len(labels):
        return None
    return fit_temperature(logits, labels)


def pooled_temperature(results: Sequence[FoldResult]) -> float | None:
    """One for all folds, by all their validation parts together."""
    parts = [(r.validation_logits, r.validation_labels) for r in results]
    known = [(logits, labels) for logits, labels in parts if logits is not None and labels is not None]
    labels = torch.cat([labels for _, labels in known]) if known else torch.zeros(0)
    if len(labels) == 0:
        return None
    return fit_temperature(torch.cat([logits for logits, _ in known]), labels)


def probabilities(logits: Tensor, temperature: float | None) -> Tensor:
    """(…, classes) in double precision; without a temperature, the scores as they are."""
    return (logits.double() / (temperature or 1.0)).softmax(dim=-1)


def calibration_of(results: Sequence[FoldResult]) -> dict | None:
    """Temperatures, and what they do to calibration error and log loss of the test graphs of all folds together.

    None without validation parts. Of a kernel machine, whose decision values are no probabilities, only `after` is told.
    """
    temperatures = [fold_temperature(result) for result in results]
    if any(value is None for value in temperatures):
        return None
    rows = [result.test_logits[kept_record(result.history).epoch - 1].double() for result in results]
    labels = torch.cat([result.test_labels for result in results])
    scaled = torch.cat([row / (t or 1.0) for row, t in zip(rows, temperatures, strict=True)])
    read = not torch.isnan(scaled).any()
    is_network = all(has_epochs(result.history) for result in results)
    record: dict[str, object] = {"temperatures": temperatures, "graphs": len(labels)}
    for name in ("ece", "log_loss"):
        metric = METRICS[name]
        before = metric(torch.cat(rows), labels) if read and is_network else None
        record[name] = {"before": before, "after": metric(scaled, labels) if read else None}
    return record
