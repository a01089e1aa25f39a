"""Metrics by task and name, each with its direction and unit."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from egin_dgl.evaluation import multiclass, multilabel, regression


@dataclass(frozen=True)
class Metric:
    """A metric of predictions and targets, with its name and direction.

    `function` returns one number, or a tensor (T,) with a value per target, of which the metric is the mean.
    """

    name: str
    function: Callable[[Tensor, Tensor], float | Tensor]
    is_loss: bool = False  # smaller is better
    is_fraction: bool = True  # between 0 and 1, printed in %
    needs_probabilities: bool = False  # reads logits as log-probabilities, which decision values are not

    def __call__(self, predicted: Tensor, targets: Tensor) -> float:
        """NaN for an empty set, or where the metric is undefined for every target."""
        values = self.per_target(predicted, targets)
        defined = [value for value in values if not math.isnan(value)]
        return math.fsum(defined) / len(defined) if defined else math.nan

    def per_target(self, predicted: Tensor, targets: Tensor) -> list[float]:
        """One value per target, NaN where the metric is undefined; a single one for classes."""
        if not len(targets):
            return []
        return torch.as_tensor(self.function(predicted, targets), dtype=torch.float64).reshape(-1).tolist()

    def best(self, values: Iterable[float]) -> float:
        return min(values) if self.is_loss else max(values)

    def gain(self, value: float) -> float:
        """The value with a sign by which larger is better."""
        return -value if self.is_loss else value


Metrics = Mapping[str, Metric]  # the first is the main one: recorded at every epoch and read by protocols


def _metrics(functions: str, module: ModuleType, prefix: str = "", **kind: bool) -> dict[str, Metric]:
    return {name: Metric(name, getattr(module, prefix + name), **kind) for name in functions.split()}


PROBABILISTIC = {"is_loss": True, "is_fraction": False, "needs_probabilities": True}
MULTICLASS = {
    **_metrics("accuracy balanced_accuracy f1_macro mcc auroc average_precision", multiclass),
    **_metrics("log_loss brier ece", multiclass, "", **PROBABILISTIC),
}
MULTILABEL = {
    **_metrics("auroc average_precision accuracy balanced_accuracy", multilabel, "label_"),
    **_metrics("log_loss brier", multilabel, "label_", **PROBABILISTIC),
}
REGRESSION = {
    **_metrics("rmse mae", regression, is_loss=True, is_fraction=False),
    **_metrics("r2 spearman", regression, is_fraction=False),
}

BY_TASK: dict[str, Metrics] = {
    "multiclass": MULTICLASS,
    "multilabel": MULTILABEL,
    "regression": REGRESSION,
}
# Direction and unit of a name, the same in every task that has it.
METRICS = REGRESSION | MULTILABEL | MULTICLASS


def compute_all_metrics(metrics: Metrics, predicted: Tensor, targets: Tensor) -> dict[str, float]:
    """All metrics by name, NaN where one is undefined."""
    return {name: metric(predicted, targets) for name, metric in metrics.items()}
