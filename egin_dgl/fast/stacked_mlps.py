"""Several MLPs of equal sizes on the same input as batched products: the edge MLPs of all layers of EGIN-E."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from egin_dgl.fast.layers import FastEGINE, FastLayer
from egin_dgl.fast.norm_block import accumulate
from egin_dgl.fast.sparse_sums import BatchSums
from egin_dgl.layers import MLP

relu_gradient = torch.ops.aten.threshold_backward.default  # the operation that autograd calls


class StackedEdgeMLPs:
    """The edge parts Σ MLP₂(e_ij) of all layers at once, and their gradients, computed without autograd.

    Args:
        mlps: M edge MLPs without normalisation, of the same sizes.
    """

    def __init__(self, mlps: Sequence[MLP]):
        self.levels, self.count = list(zip(*map(linears, mlps), strict=True)), len(mlps)

    @classmethod
    def build(cls, layers: Sequence[FastLayer]) -> "StackedEdgeMLPs | None":
        """None unless all are layers of EGIN-E with ε = 0, whose edge MLPs have equal sizes and no dropout."""
        if not layers or not all(type(layer) is FastEGINE and not layer.has_eps for layer in layers):
            return None
        mlps = [layer.layer.edge_mlp for layer in layers]
        if not all(type(mlp) is MLP and all(map(is_stackable, mlp)) for mlp in mlps):
            return None
        shapes = {tuple(linear.weight.shape for linear in linears(mlp)) for mlp in mlps}
        return cls(mlps) if len(shapes) == 1 else None

    def forward(self, sums: BatchSums) -> Sequence[Tensor]:
        """One (N, R) tensor per layer."""
        self.edge_sum, x = sums.edge_types
        first, *others = self.levels
        weights = torch.cat([f.weight for f in first])
        h = nn.functional.linear(x, weights, torch.cat([f.bias for f in first]))
        self.saved = [(x, weights)]  # the input of each level, and its weights
        for level in others:
            h = self.split(h.relu_())
            weights, biases = torch.stack([f.weight for f in level]), torch.stack([f.bias for f in level])
            self.saved.append((h, weights))
            h = self.join(torch.baddbmm(biases.unsqueeze(1), h, weights.transpose(1, 2)))
        return self.edge_sum.apply(h).chunk(self.count, dim=1)

    def backward(self, grads: Sequence[Tensor]) -> None:
        """Accumulate the gradients of all weights, from those of the edge parts."""
        grad = self.edge_sum.apply_transpose(torch.cat(list(grads), dim=1))
        first, *others = self.levels
        (x, _), *saved = self.saved
        for level, (h, weights) in reversed(list(zip(others, saved, strict=True))):
            grads_split = self.split(grad)
            self.accumulate(level, grads_split.transpose(1, 2) @ h, grads_split.sum(1))
            grad = self.join(relu_gradient(grads_split @ weights, h, 0))
        shape = (self.count, -1)
        self.accumulate(first, (grad.t() @ x).unflatten(0, shape), grad.sum(0).unflatten(0, shape))

    def accumulate(self, level: Sequence[nn.Linear], weights: Tensor, biases: Tensor) -> None:
        for linear, weight, bias in zip(level, weights, biases, strict=True):
            accumulate(linear.weight, weight)
            accumulate(linear.bias, bias)

    def split(self, h: Tensor) -> Tensor:
        """(V, M · D) -> (M, V, D)."""
        return h.view(len(h), self.count, -1).transpose(0, 1)

    def join(self, h: Tensor) -> Tensor:
        """(M, V, D) -> (V, M · D)."""
        return h.transpose(0, 1).flatten(1)


def is_stackable(step: nn.Module) -> bool:
    return type(step) in (nn.Linear, nn.Identity, nn.ReLU) or (type(step) is nn.Dropout and step.p == 0)


def linears(mlp: MLP) -> list[nn.Linear]:
    return [step for step in mlp if isinstance(step, nn.Linear)]
