r"""Temperature scaling (Guo et al., 2017), fitted on validation graphs.

.. math:: p = \mathrm{softmax}(z / T), \quad
   T = \arg\min_T \sum_i -\log p_{i, y_i} + \tfrac12 (\log T)^2

If every validation graph is classified correctly, the likelihood alone drives T to zero, that is every probability to
0 or 1. The prior on log T, as strong as about one graph, and bounds on T prevent this.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from egin_dgl.evaluation.history import FoldResult, selected_record
from egin_dgl.evaluation.metrics import MULTICLASS, Metrics
from egin_dgl.evaluation.protocols import has_probabilities

MAX_TEMPERATURE = 50.0  # and 1 / MAX_TEMPERATURE is the minimum


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """T for logits (n, classes) and labels (n,)."""
    from scipy.optimize import minimize_scalar  # slow to import, needed at the end of a fold only

    logits = logits.double()

    def cost(log_t: float) -> float:
        return cross_entropy(logits / math.exp(log_t), labels, reduction="sum").item() + log_t**2 / 2

    bound = math.log(MAX_TEMPERATURE)
    found = minimize_scalar(cost, bounds=(-bound, bound), method="bounded", options={"xatol": 1e-6})
    # On an almost flat cost the search may end at a bound, no better than T = 1.
    return math.exp(min((float(found.x), 0.0), key=cost))


def fold_temperature(result: FoldResult) -> float | None:
    """Temperature of one fold; None without a validation set."""
    return pooled_temperature([result])


def pooled_temperature(results: Sequence[FoldResult]) -> float | None:
    """One temperature from the validation sets of all folds; None if there are none."""
    pairs = [(r.validation_logits, r.validation_labels) for r in results]
    known = [(logits, labels) for logits, labels in pairs if logits is not None and labels is not None]
    if any(labels.is_floating_point() for _, labels in known) or not sum(len(labels) for _, labels in known):
        return None
    logits, labels = (torch.cat(tensors) for tensors in zip(*known, strict=True))
    return fit_temperature(logits, labels)


def probabilities(logits: Tensor, temperature: float | None) -> Tensor:
    """softmax(logits / T) over the last dimension, in double precision; T = 1 if None."""
    return (logits.double() / (temperature or 1.0)).softmax(dim=-1)


def summarize_calibration(results: Sequence[FoldResult], metrics: Metrics = MULTICLASS) -> dict | None:
    """Temperatures, and calibration error and log loss on the test graphs of all folds before and after scaling.

    None without validation sets. `before` is null for kernel machines, whose decision values are not log-probabilities.
    """
    temperatures = [fold_temperature(result) for result in results]
    if any(value is None for value in temperatures):
        return None
    logits = [result.test_logits[selected_record(result.history).epoch - 1].double() for result in results]
    labels = torch.cat([result.test_labels for result in results])
    scaled = torch.cat([z / (t or 1.0) for z, t in zip(logits, temperatures, strict=True)])
    evaluated = not torch.isnan(scaled).any()
    comparable = all(has_probabilities(result.history) for result in results)
    record: dict[str, object] = {"temperatures": temperatures, "graphs": len(labels)}
    for name in ("ece", "log_loss"):
        metric = metrics[name]
        before = metric(torch.cat(logits), labels) if evaluated and comparable else None
        record[name] = {"before": before, "after": metric(scaled, labels) if evaluated else None}
    return record
