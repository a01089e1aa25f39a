r"""Temperature scaling (Guo et al., 2017), fitted on the validation graphs of all folds.

.. math:: p = \mathrm{softmax}(z / T), \quad
   T = \arg\min_T \sum_i -\log p_{i, y_i} + \tfrac{\lambda}{2} (\log T)^2

One fold has few validation graphs, and a temperature fitted on 19 of them does more harm than good: the folds share one. The
test graphs of a fold are validation graphs of others; their probabilities take a temperature that is fitted without them.

The penalty shrinks T towards 1 where there is little data. A graph whose class is predicted with a probability of 90 % tells
about log T with a Fisher information of p (1 − p) (z_1 − z_2)² ≈ 0.43, so λ = 20 is worth about 50 such graphs. It also keeps T
from zero, that is every probability from 0 or 1, where every validation graph is classified correctly.

T is at least 1, which never makes predictions more confident: the validation sets have also selected the epochs, so that they
look better than new graphs, and new graphs may come from elsewhere. And a T near 1 that fits the validation sets a little better
is as likely to do harm: T is 1 unless the data reject this, by a likelihood ratio test at 5 %, for which the sum above must be
lower by χ²₁(0.95) / 2 = 1.92.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from egin_dgl.data.splits import Split
from egin_dgl.evaluation.history import FoldResult, selected_record
from egin_dgl.evaluation.metrics import BY_TASK, MULTICLASS, Metric
from egin_dgl.evaluation.protocols import has_probabilities

MAX_TEMPERATURE = 50.0
PENALTY = 20.0  # λ for networks and forests, worth about 50 graphs
MIN_GAIN = 1.92  # of the penalised log-likelihood over T = 1: χ²₁(0.95) / 2
KERNEL_PENALTY = (
    1.0  # for kernel machines, whose decision values have a scale of their own: T = 1 means nothing there
)


def fit_temperature(
    logits: Tensor,
    labels: Tensor,
    log_loss: Metric = MULTICLASS["log_loss"],
    penalty: float = PENALTY,
    min_gain: float = MIN_GAIN,
    minimum: float = 1.0,
) -> float:
    """T ≥ `minimum` for logits (n, outputs) and labels, 1 where it gains less than `min_gain`.

    `log_loss` is that of the task; (n, T) labels may be missing.
    """
    logits, known = logits.double(), int((~labels.isnan()).sum())

    def cost(log_t: float) -> float:
        return known * log_loss(logits / math.exp(log_t), labels) + penalty * log_t**2 / 2

    found = golden_section(cost, math.log(minimum), math.log(MAX_TEMPERATURE))
    # Not less than zero: on an almost flat cost the search may end at a bound, worse than T = 1.
    return math.exp(found) if cost(0.0) - cost(found) > min_gain else 1.0


def golden_section(cost: Callable[[float], float], low: float, high: float, tolerance: float = 1e-6) -> float:
    """The minimum of a unimodal function by golden-section search.

    By hand, because every run would wait 0.2 s for the import of `scipy.optimize` and needs nothing else of it.
    """
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    cost_a, cost_b = cost(a), cost(b)
    while high - low > tolerance:
        if cost_a <= cost_b:
            high, b, cost_b = b, a, cost_a
            a = high - ratio * (high - low)
            cost_a = cost(a)
        else:
            low, a, cost_a = a, b, cost_b
            b = low + ratio * (high - low)
            cost_b = cost(b)
    return (low + high) / 2


def fold_temperature(result: FoldResult) -> float | None:
    """Temperature of one fold alone; None without a validation set."""
    return pooled_temperature([result])


def pooled_temperature(
    results: Sequence[FoldResult],
    splits: Mapping[int, Split] | None = None,
    without: Sequence[int] | np.ndarray = (),
) -> float | None:
    """One temperature from the validation sets of all folds, but for the graphs `without`; None if there are none.

    splits: of the folds, by number; needed for `without`.
    """
    log_loss = BY_TASK[results[0].task].get("log_loss")
    if log_loss is None:  # no probabilities
        return None
    pairs = []
    for result in results:
        if result.validation_logits is None or result.validation_labels is None:
            continue
        kept = torch.ones(len(result.validation_labels), dtype=torch.bool)
        if splits is not None:
            kept = torch.from_numpy(~np.isin(splits[result.fold].validation, without))
        pairs.append((result.validation_logits[kept], result.validation_labels[kept]))
    if not sum(len(labels) for _, labels in pairs):
        return None
    logits, labels = (torch.cat(tensors) for tensors in zip(*pairs, strict=True))
    probable = all(has_probabilities(result.history) for result in results)
    if not probable:
        return fit_temperature(
            logits, labels, log_loss, KERNEL_PENALTY, min_gain=0.0, minimum=1 / MAX_TEMPERATURE
        )
    return fit_temperature(logits, labels, log_loss)


def held_out_temperatures(results: Sequence[FoldResult], splits: Mapping[int, Split]) -> list[float | None]:
    """The temperature for the test graphs of each fold, fitted without these; None where a fold has no validation set."""
    if any(result.validation_logits is None for result in results):
        return [None] * len(results)
    return [pooled_temperature(results, splits, splits[result.fold].test) for result in results]


def summarize_calibration(results: Sequence[FoldResult], splits: Mapping[int, Split]) -> dict | None:
    """The temperature of the run, and calibration error and log loss on the test graphs of all folds before and after
    scaling by the temperatures of these graphs.

    None without validation sets. `before` is null for kernel machines, whose decision values are not log-probabilities.
    """
    temperatures = held_out_temperatures(results, splits)
    if any(value is None for value in temperatures):
        return None
    logits = [result.test_logits[selected_record(result.history).epoch - 1].double() for result in results]
    labels = torch.cat([result.test_labels for result in results])
    scaled = torch.cat([z / (t or 1.0) for z, t in zip(logits, temperatures, strict=True)])
    evaluated = not torch.isnan(scaled).any()
    comparable = all(has_probabilities(result.history) for result in results)
    record: dict[str, object] = {"temperature": pooled_temperature(results), "temperatures": temperatures}
    record["graphs"] = len(labels)
    for name in ("ece", "log_loss"):
        if (metric := BY_TASK[results[0].task].get(name)) is None:
            continue
        before = metric(torch.cat(logits), labels) if evaluated and comparable else None
        record[name] = {"before": before, "after": metric(scaled, labels) if evaluated else None}
    return record
