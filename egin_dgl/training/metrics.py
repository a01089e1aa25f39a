"""Scores of a set of logits beyond accuracy, where a skewed dataset would flatter it."""

import torch
from torch import Tensor
from torchmetrics.functional.classification import (
    binary_auroc,
    multiclass_confusion_matrix,
    multiclass_f1_score,
    multiclass_matthews_corrcoef,
)


def score(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """AUROC, Matthews correlation and macro F1: (B, classes), (B,) -> numbers; AUROC is NaN with one class only."""
    classes = logits.shape[1]
    return {
        "auroc": macro_auroc(logits.softmax(dim=1), labels),
        "mcc": float(multiclass_matthews_corrcoef(logits, labels, classes)),
        "f1_macro": float(multiclass_f1_score(logits, labels, classes, average="macro")),
    }


def macro_auroc(probabilities: Tensor, labels: Tensor) -> float:
    """Mean one-against-rest AUROC over the classes that occur; torchmetrics counts an absent class as 0."""
    values = [
        binary_auroc(probabilities[:, c], (labels == c).long())
        for c in labels.unique().tolist()
        if (labels != c).any()
    ]
    return float(torch.stack(values).mean()) if values else float("nan")


def confusion(logits: Tensor, labels: Tensor) -> Tensor:
    """Counts, true class by predicted class: (classes, classes)."""
    return multiclass_confusion_matrix(logits, labels, logits.shape[1])
