"""Multiclass classification: every graph has one of two or more classes."""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.evaluation.metrics import MULTICLASS
from egin_dgl.evaluation.multiclass import margin
from egin_dgl.options import Loss
from egin_dgl.tasks.task import SMALLEST, Task, format_numbers, join_members, names_of, set_scores


@dataclass(frozen=True, eq=False)
class Multiclass(Task):
    r"""Cross entropy of softmax(logits); labels (B,) are numbers of classes, -1 where unknown.

    .. math:: L = -\frac{\sum_i w_{y_i} \log p_{i, y_i}}{\sum_i w_{y_i}}, \quad p_i = \mathrm{softmax}(z_i)
    """

    name = "multiclass"
    metrics = MULTICLASS
    baseline = "majority class"
    pictures = ("confusion", "probabilities")

    weights: Tensor | None = field(default=None, repr=False)  # (classes,)

    @classmethod
    def fit(
        cls, labels: Tensor, info: DatasetInfo, loss: Loss = "auto", balanced: bool = False
    ) -> "Multiclass":
        return cls(balanced_class_weights(labels, info.classes) if balanced else None)

    def loss(
        self, outputs: Tensor, labels: Tensor, weighted: bool = False, graph_weights: Tensor | None = None
    ) -> Tensor:
        weights = self.weights if weighted else None
        if graph_weights is None:
            return cross_entropy(outputs, labels, weights)
        losses = cross_entropy(outputs, labels, weights, reduction="none")
        shares = graph_weights.to(losses.dtype) * (1.0 if weights is None else weights[labels])
        return (losses * graph_weights.to(losses.dtype)).sum() / shares.sum().clamp(min=1e-30)

    def loss_weight(self, labels: Tensor, graph_weights: Tensor | None = None) -> Tensor:
        weights = (
            torch.ones_like(labels, dtype=torch.float32) if self.weights is None else self.weights[labels]
        )
        return weights.sum() if graph_weights is None else (weights * graph_weights).sum()

    @classmethod
    def predict(cls, logits: Tensor, temperature: float | None = None) -> Tensor:
        return (logits.double() / (temperature or 1.0)).softmax(dim=-1)

    @classmethod
    def to_logits(cls, prediction: Tensor) -> Tensor:
        return prediction.clamp(min=SMALLEST).log()

    @classmethod
    def evidence(cls, logits: Tensor, output: int, temperature: float | None = None) -> Tensor:
        return margin(logits.double() / (temperature or 1.0), output)

    @classmethod
    def nonconformity(cls, prediction: Tensor, labels: Tensor) -> Tensor:
        """1 − p of the class, but 0 of the most probable one, so that no set is empty."""
        known = labels.clamp(min=0)[:, None]
        return set_scores(prediction).gather(1, known).masked_fill(labels[:, None] < 0, torch.nan)

    @classmethod
    def conformal_columns(cls, prediction: Tensor, quantiles: Tensor, info: DatasetInfo) -> dict[str, list]:
        return {"set": join_members(set_scores(prediction) <= quantiles, info.class_names)}

    @classmethod
    def decide(cls, logits: Tensor) -> Tensor:
        return logits.argmax(dim=-1)

    @classmethod
    def constant(cls, labels: Tensor, info: DatasetInfo) -> Tensor:
        return labels.bincount(minlength=info.classes).double().log()[None]

    @classmethod
    def columns(cls, info: DatasetInfo) -> tuple[list[str], list[str]]:
        return ["label"], ["predicted", *(f"p_{name}" for name in info.class_names)]

    @classmethod
    def frame_columns(cls, prediction: Tensor, info: DatasetInfo) -> dict[str, list]:
        predicted, *others = cls.columns(info)[1]
        names = names_of(prediction.argmax(dim=1).tolist(), info.class_names)
        return {predicted: names, **dict(zip(others, prediction.T.tolist(), strict=True))}

    @classmethod
    def true_cells(cls, label: Tensor, info: DatasetInfo) -> list[str]:
        return names_of([int(label)], info.class_names)

    @classmethod
    def predicted_cells(cls, prediction: Tensor, info: DatasetInfo) -> list[str]:
        return [info.class_names[int(prediction.argmax())], *format_numbers(prediction)]


def balanced_class_weights(labels: Tensor, classes: int) -> Tensor:
    """w_c = n / (C n_c) for the C classes that occur, 0 for others: all classes have the same total weight."""
    counts = torch.bincount(labels, minlength=classes).float()
    present = counts > 0
    weights = torch.zeros(classes, device=labels.device)
    weights[present] = len(labels) / (present.sum() * counts[present])
    return weights
