"""The multilayer perceptron inside every layer, and the normalisation it shares with the classifier."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeGuard

import torch
from torch import Tensor, nn

relu_gradient = torch.ops.aten.threshold_backward.default  # the one that autograd itself would call


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that also takes a training batch of a single row, or of none.

    One row has no variance: it is normalised with the running statistics instead of raising, so that a last batch of
    one single-node graph does not end a training run.
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
    """(Linear → norm → ReLU → dropout) × (depth − 1) → Linear: (…, in_dim) -> (…, out_dim).

    A depth of 1 is a single linear map. Weights start at Xavier's uniform values and biases at zero.
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


def can_run_together(mlps: Sequence[nn.Module]) -> TypeGuard[Sequence[MLP]]:
    """Whether these are MLPs without normalisation or dropout, of the same sizes, that no hook waits for."""
    steps = [step for mlp in mlps if type(mlp) is MLP for step in mlp]
    shapes = {tuple(layer.weight.shape for layer in linears(mlp)) for mlp in mlps if type(mlp) is MLP}
    return (
        all(type(mlp) is MLP for mlp in mlps)
        and len(shapes) == 1
        and all(
            type(step) in (nn.Linear, nn.Identity, nn.ReLU) or (type(step) is nn.Dropout and step.p == 0)
            for step in steps
        )
        and not any(step._forward_hooks or step._forward_pre_hooks for step in [*mlps, *steps])
    )


class SideBySide:
    """Several MLPs for the same input, of which `can_run_together` is true: (V, in_dim) -> (V, M · out_dim).

    The gradient is written by hand, for passes that autograd does not record.
    """

    def __init__(self, mlps: Sequence[MLP]):
        self.levels, self.count = list(zip(*map(linears, mlps), strict=True)), len(mlps)

    def parameters(self) -> list[Tensor]:
        return [p for level in self.levels for f in level for p in (f.weight, f.bias)]

    def forward(self, x: Tensor) -> Tensor:
        first, *others = self.levels
        weights = torch.cat([f.weight for f in first])
        h = nn.functional.linear(x, weights, torch.cat([f.bias for f in first]))
        self.saved = [(x, weights)]  # the input of each level, and its weights
        for level in others:
            h = self.apart(h.relu_())
            weights, biases = torch.stack([f.weight for f in level]), torch.stack([f.bias for f in level])
            self.saved.append((h, weights))
            h = self.beside(torch.baddbmm(biases.unsqueeze(1), h, weights.transpose(1, 2)))
        return h

    def gradients(self, grad: Tensor) -> list[Tensor]:
        """Those of `parameters`, from that of the result."""
        (x, _), *others = self.saved
        found: list[Tensor] = []
        for h, weights in reversed(others):
            to_each = self.apart(grad)
            found = [*self.in_turn(to_each.transpose(1, 2) @ h, to_each.sum(1)), *found]
            grad = self.beside(relu_gradient(to_each @ weights, h, 0))
        to_first = (grad.t() @ x).unflatten(0, (self.count, -1)), grad.sum(0).unflatten(0, (self.count, -1))
        return [*self.in_turn(*to_first), *found]

    def apart(self, h: Tensor) -> Tensor:
        """(V, M · D) -> (M, V, D)."""
        return h.view(len(h), self.count, -1).transpose(0, 1)

    def beside(self, h: Tensor) -> Tensor:
        """(M, V, D) -> (V, M · D)."""
        return h.transpose(0, 1).flatten(1)

    def in_turn(self, weights: Tensor, biases: Tensor) -> list[Tensor]:
        return [part for pair in zip(weights, biases, strict=True) for part in pair]


def linears(mlp: MLP) -> list[nn.Linear]:
    """The linear maps of an MLP."""
    return [step for step in mlp if isinstance(step, nn.Linear)]
