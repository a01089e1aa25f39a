"""Regression: one or more real values of a graph, some of which may be unknown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import huber_loss, l1_loss, mse_loss

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.evaluation.metrics import REGRESSION
from egin_dgl.options import Loss
from egin_dgl.tasks.task import Task, masked_mean, per_target

LOSSES: dict[str, Callable[..., Tensor]] = {
    "auto": mse_loss,
    "mse": mse_loss,
    "mae": l1_loss,
    "huber": huber_loss,
}


@dataclass(frozen=True, eq=False)
class Regression(Task):
    r"""A model's output z is the standardised value, so that its scale is right for any unit; labels (B, T), NaN unknown.

    .. math:: \hat y = \mu + \sigma z, \qquad L = \frac{\sum_{it} k_{it} \, \ell(z_{it}, (y_{it} - \mu_t) / \sigma_t)}
       {\sum_{it} k_{it}}, \quad k_{it} = 1 \text{ where the value is known, else } 0

    μ and σ are mean and standard deviation of each target over the fold's training set; ℓ is the squared error (``mse``),
    the absolute error (``mae``) or the Huber loss with threshold 1 (``huber``).
    """

    name = "regression"
    metrics = REGRESSION
    losses = ("auto", "mse", "mae", "huber")
    baseline = "training mean"
    pictures = ("parity",)
    has_probabilities = False
    evidence_name = "value"
    conformal_name = "prediction intervals"

    mean: Tensor  # (T,) float64
    std: Tensor
    kind: Loss = "auto"  # the loss

    @classmethod
    def fit(
        cls, labels: Tensor, info: DatasetInfo, loss: Loss = "auto", balanced: bool = False
    ) -> "Regression":
        mean = cls.constant(labels, info)[0]
        std = (labels.double() - mean).square().nanmean(dim=0).sqrt()
        # A target that is constant, or has no value, in the training set: its std is rounding noise or NaN.
        return cls(mean, torch.where(std > 1e-9 * mean.abs(), std, 1.0), loss)

    def loss(
        self, outputs: Tensor, labels: Tensor, weighted: bool = False, graph_weights: Tensor | None = None
    ) -> Tensor:
        known = ~labels.isnan()
        truth = torch.where(known, self.encode(labels), 0.0).to(outputs.dtype)
        return masked_mean(LOSSES[self.kind](outputs, truth, reduction="none"), known, graph_weights)

    def encode(self, labels: Tensor) -> Tensor:
        return (labels - self.mean) / self.std

    def decode(self, outputs: Tensor) -> Tensor:
        return self.mean.to(outputs.device) + self.std.to(outputs.device) * outputs.double()

    def to_dict(self) -> dict[str, Any]:
        return {"mean": self.mean.tolist(), "std": self.std.tolist()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Regression":
        mean, std = (torch.tensor(record[key], dtype=torch.float64) for key in ("mean", "std"))
        return cls(mean, std)

    @classmethod
    def predict(cls, logits: Tensor, temperature: float | None = None) -> Tensor:
        return logits.double()

    @classmethod
    def to_logits(cls, prediction: Tensor) -> Tensor:
        return prediction

    @classmethod
    def evidence(cls, logits: Tensor, output: int, temperature: float | None = None) -> Tensor:
        return logits[:, output].double()

    @classmethod
    def describe(cls, name: str, value: float) -> str:
        return f"{name} = {value:.4g}"

    @classmethod
    def nonconformity(cls, prediction: Tensor, labels: Tensor) -> Tensor:
        """|ŷ − y|."""
        return (prediction - labels).abs()

    @classmethod
    def conformal_columns(cls, prediction: Tensor, quantiles: Tensor, info: DatasetInfo) -> dict[str, list]:
        """ŷ ± q."""
        ends = (prediction - quantiles, prediction + quantiles)
        columns = [
            zip(per_target(name, info), end.T.tolist(), strict=True)
            for name, end in zip(("low", "high"), ends, strict=True)
        ]
        return {name: values for pair in zip(*columns, strict=True) for name, values in pair}

    @classmethod
    def decide(cls, logits: Tensor) -> Tensor:
        return logits

    @classmethod
    def constant(cls, labels: Tensor, info: DatasetInfo) -> Tensor:
        """The mean of each target; 0 for a target without a value."""
        return labels.double().nanmean(dim=0, keepdim=True).nan_to_num(nan=0.0)

    @classmethod
    def columns(cls, info: DatasetInfo) -> tuple[list[str], list[str]]:
        return per_target("label", info), per_target("predicted", info)
