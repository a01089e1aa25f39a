"""The multilayer perceptron inside of layers, and normalisation."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """BatchNorm1d that also takes a training batch of one row or none, which it normalises with the running statistics.

    One row has no variance, and torch would raise: a last batch of one single-node graph must not end a training run.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training and x.shape[0] < 2:
            return nn.functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
        return super().forward(x)


NORMS: dict[str, Callable[[int], nn.Module]] = {
    "batch": BatchNorm,
    "layer": nn.LayerNorm,
    "none": lambda dim: nn.Identity(),
}
Norm = Literal["batch", "layer", "none"]


def make_norm(norm: str, dim: int) -> nn.Module:
    """The normalisation of that name over `dim` features."""
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
    return NORMS[norm](dim)


class MLP(nn.Sequential):
    """Multilayer perceptron: (Linear → norm → ReLU → dropout) × (depth − 1) → Linear.

    Weights are initialised by Xavier's uniform distribution, biases by zero.

    Args:
        in_dim: input features.
        hidden_dim: features between linear maps.
        out_dim: output features.
        depth: linear maps. Default: 2.
        dropout: probability. Default: 0.
        norm: batch, layer or none. Default: batch.

    Shapes: (…, in_dim) -> (…, out_dim).

    Example:
        >>> import torch
        >>> MLP(7, 64, 2, depth=3)(torch.rand(5, 7)).shape
        torch.Size([5, 2])
    """

    def __init__(
        self,
        in_dim: int,
        hidden_dim: int,
        out_dim: int,
        depth: int = 2,
        dropout: float = 0.0,
        norm: str = "batch",
    ):
        positive = {"in_dim": in_dim, "hidden_dim": hidden_dim, "out_dim": out_dim, "depth": depth}
        for name, value in positive.items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"an MLP's {name} must be a positive integer, got {value!r}")
        steps: list[nn.Module] = []
        for level in range(depth - 1):
            steps += [
                linear(in_dim if level == 0 else hidden_dim, hidden_dim),
                make_norm(norm, hidden_dim),
                nn.ReLU(),
                nn.Dropout(dropout),
            ]
        steps.append(linear(in_dim if depth == 1 else hidden_dim, out_dim))
        super().__init__(*steps)


def linear(in_dim: int, out_dim: int) -> nn.Linear:
    """A linear map with Xavier initialisation, as the paper's authors used."""
    layer = nn.Linear(in_dim, out_dim)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
