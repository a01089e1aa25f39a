"""Scores of a set of logits, beside accuracy those that a skewed dataset does not flatter."""

from collections.abc import Callable

import torch
from torch import Tensor
from torchmetrics.functional.classification import (
    binary_auroc,
    binary_average_precision,
    multiclass_accuracy,
    multiclass_confusion_matrix,
    multiclass_f1_score,
)


def accuracy(logits: Tensor, labels: Tensor) -> float:
    return float((logits.argmax(dim=1) == labels).double().mean())


def balanced_accuracy(logits: Tensor, labels: Tensor) -> float:
    """Mean recall of the classes that occur; torchmetrics leaves out those neither true nor predicted only."""
    recalls = multiclass_accuracy(logits, labels, logits.shape[1], average="none")
    return float(recalls[labels.unique()].mean())


def f1_macro(logits: Tensor, labels: Tensor) -> float:
    return float(multiclass_f1_score(logits, labels, logits.shape[1], average="macro"))


def mcc(logits: Tensor, labels: Tensor) -> float:
    """Matthews' correlation, from counts; 0 where it is not defined.

    By hand, as torchmetrics gives 0.41 for answering the majority class of 95 : 5, where there is no correlation.
    """
    counts = confusion(logits, labels).double()
    true, predicted, n = counts.sum(dim=1), counts.sum(dim=0), counts.sum()
    covariance = counts.trace() * n - true @ predicted
    spread = ((n**2 - true @ true) * (n**2 - predicted @ predicted)).sqrt()
    return float(covariance / spread) if spread > 0 else 0.0


def auroc(logits: Tensor, labels: Tensor) -> float:
    return one_against_rest(binary_auroc, logits, labels)


def average_precision(logits: Tensor, labels: Tensor) -> float:
    return one_against_rest(binary_average_precision, logits, labels)


def one_against_rest(metric: Callable[[Tensor, Tensor], Tensor], logits: Tensor, labels: Tensor) -> float:
    """Mean over the classes that occur (torchmetrics counts an absent class as 0); NaN where only one does.

    Of two classes the value is that of the second, the positive one, as chemists report it; for AUROC both are equal.
    """
    present = labels.unique()
    if len(present) < 2:
        return float("nan")
    if logits.shape[1] == 2:
        present = present[1:]
    probabilities = logits.softmax(dim=1)
    values = [metric(probabilities[:, c], (labels == c).long()) for c in present.tolist()]
    return float(torch.stack(values).mean())


METRICS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "f1_macro": f1_macro,
    "mcc": mcc,
    "auroc": auroc,
    "average_precision": average_precision,
}


def score(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """All metrics: (B, classes), (B,) -> numbers, NaN where one is not defined."""
    return {name: metric(logits, labels) for name, metric in METRICS.items()}


def confusion(logits: Tensor, labels: Tensor) -> Tensor:
    """Counts, true class by predicted class: (classes, classes)."""
    return multiclass_confusion_matrix(logits, labels, logits.shape[1])
