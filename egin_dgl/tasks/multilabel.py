"""Multilabel classification: several properties of a graph, each present, absent or unknown."""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.evaluation.metrics import MULTILABEL
from egin_dgl.options import Loss
from egin_dgl.tasks.task import Task, join_members, masked_mean, per_target, set_scores


@dataclass(frozen=True, eq=False)
class Multilabel(Task):
    r"""Binary cross entropy of sigmoid(logits), the mean over the known labels; labels (B, T) are 0, 1 or NaN.

    .. math:: L = -\frac{\sum_{it} k_{it} w_{it} \, [y_{it} \log p_{it} + (1 - y_{it}) \log (1 - p_{it})]}{\sum_{it} k_{it}},
       \quad p = \sigma(z), \quad k_{it} = 1 \text{ where the label is known, else } 0

    With balanced weights :math:`w_{it} = n_t / (2 n_{t, y_{it}})`: both classes of a target have the same total weight.
    """

    name = "multilabel"
    metrics = MULTILABEL
    baseline = "base rates"
    pictures = ("probabilities",)

    weights: Tensor | None = field(default=None, repr=False)  # (2, T), of absent and present labels

    @classmethod
    def fit(
        cls, labels: Tensor, info: DatasetInfo, loss: Loss = "auto", balanced: bool = False
    ) -> "Multilabel":
        return cls(balanced_label_weights(labels) if balanced else None)

    def loss(
        self, outputs: Tensor, labels: Tensor, weighted: bool = False, graph_weights: Tensor | None = None
    ) -> Tensor:
        known = ~labels.isnan()
        truth = torch.where(known, labels, 0.0).to(outputs.dtype)
        losses = binary_cross_entropy_with_logits(outputs, truth, reduction="none")
        if weighted and self.weights is not None:
            losses = losses * torch.where(truth > 0, self.weights[1], self.weights[0]).to(losses.dtype)
        return masked_mean(losses, known, graph_weights)

    @classmethod
    def predict(cls, logits: Tensor, temperature: float | None = None) -> Tensor:
        return (logits.double() / (temperature or 1.0)).sigmoid()

    @classmethod
    def to_logits(cls, prediction: Tensor) -> Tensor:
        return prediction.logit(eps=1e-15)

    @classmethod
    def evidence(cls, logits: Tensor, output: int, temperature: float | None = None) -> Tensor:
        return logits[:, output].double() / (temperature or 1.0)

    @classmethod
    def nonconformity(cls, prediction: Tensor, labels: Tensor) -> Tensor:
        """1 − p of the label, but 0 of the more probable one, so that no set is empty."""
        known = ~labels.isnan()
        chosen = torch.where(known, labels, 0.0).long()[..., None]
        return label_scores(prediction).gather(2, chosen)[..., 0].masked_fill(~known, torch.nan)

    @classmethod
    def conformal_columns(cls, prediction: Tensor, quantiles: Tensor, info: DatasetInfo) -> dict[str, list]:
        members = label_scores(prediction) <= quantiles[:, None]
        sets = [join_members(column, ("0", "1")) for column in members.unbind(dim=1)]
        return dict(zip(per_target("set", info), sets, strict=True))

    @classmethod
    def decide(cls, logits: Tensor) -> Tensor:
        return (logits > 0).long()

    @classmethod
    def constant(cls, labels: Tensor, info: DatasetInfo) -> Tensor:
        """Log-odds of the base rates, with one more label of each kind, so that they are finite."""
        absent, present = count_labels(labels) + 1
        return (present / absent).log()[None]

    @classmethod
    def columns(cls, info: DatasetInfo) -> tuple[list[str], list[str]]:
        return per_target("label", info), per_target("p", info)


def label_scores(prediction: Tensor) -> Tensor:
    """Scores of absent and of present labels, (B, T, 2), of their probabilities (B, T)."""
    return set_scores(torch.stack([1 - prediction, prediction], dim=-1))


def count_labels(labels: Tensor) -> Tensor:
    """Graphs whose label is 0, and is 1: (2, T) float64."""
    return torch.stack([(labels == value).sum(dim=0) for value in (0, 1)]).double()


def balanced_label_weights(labels: Tensor) -> Tensor:
    """w_{t, y} = n_t / (2 n_{t, y}) for labels that occur, 0 for others: (2, T)."""
    counts = count_labels(labels)
    weights = counts.sum(dim=0) / (2 * counts)
    return torch.where(counts > 0, weights, 0.0).float()
