"""Parts of a network with gradients written by hand: Linear → BatchNorm → ReLU, and the edge MLPs of EGIN-E.

The objects hold what the gradient of one pass needs: a pass ends before the next begins.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from egin_dgl.fast.layers import FastEGINE, FastLayer, is_rowwise
from egin_dgl.fast.sparse_sums import USES_AVX, BatchSums
from egin_dgl.layers import MLP
from egin_dgl.layers.mlp import BatchNorm

# The operations that autograd calls.
relu_gradient = torch.ops.aten.threshold_backward.default
relu_backward = torch.ops.aten.threshold_backward.grad_input
norm_backward = torch.ops.aten.native_batch_norm_backward.default


class NormBlock:
    r"""y = ReLU(norm(x W^T)).

    A bias before batch normalisation is subtracted with the mean: it changes the running mean, and has no gradient.
    """

    def __init__(self, linear: Any, norm: Any):
        self.weight, self.bias = linear.weight, linear.bias
        self.scale, self.shift, self.eps = norm.weight, norm.bias, norm.eps
        self.running_mean, self.running_var = norm.running_mean, norm.running_var
        self.num_batches, self.momentum = norm.num_batches_tracked, norm.momentum

    def forward(self, x: Tensor, groups: int) -> Tensor:
        """(N, D) -> (N, H).

        groups: x has its D columns in this many groups, one after another; W has the columns of a group apart.
        """
        self.groups, self.used = groups, regroup(self.weight, -1, groups)
        linear = x @ self.used.t()
        y, mean, inverse = torch.native_batch_norm(
            linear, self.scale, self.shift, self.running_mean, self.running_var, True, self.momentum, self.eps
        )
        self.running_mean.add_(self.bias, alpha=self.momentum)
        self.num_batches.add_(1)
        self.saved = x, linear, mean, inverse, y.relu_()
        return y

    def set_statistics(self, mean: Tensor, variance: Tensor) -> None:
        """Set the running statistics, from mean and variance of x W^T."""
        torch.add(mean, self.bias, out=self.running_mean)
        self.running_var.copy_(variance)
        self.mean, self.factor = mean, self.scale * (variance + self.eps).rsqrt_()

    def normalize_(self, linear: Tensor) -> Tensor:
        """From x W^T to y with the statistics that were set; x W^T is overwritten."""
        return torch.addcmul(self.shift, linear.sub_(self.mean), self.factor, out=linear).relu_()

    def backward(self, grad: Tensor) -> Tensor:
        """Accumulate the gradients of the parameters, and return that of x W^T.

        `grad` is overwritten, and saved tensors are released at once, so that the next result finds memory in the cache.
        """
        x, linear, mean, inverse, y = self.saved
        del self.saved
        statistics = self.running_mean, self.running_var, mean, inverse
        if USES_AVX:
            relu_backward(grad, y, 0, grad_input=grad)
        else:  # without vectors, `threshold_backward` branches for every number and takes four times as long
            torch.mul(grad, y > 0, out=grad)
        del y
        grad_linear, grad_scale, grad_shift = norm_backward(
            grad, linear, self.scale, *statistics, True, self.eps, [True, True, True]
        )
        accumulate(self.scale, grad_scale)
        accumulate(self.shift, grad_shift)
        if self.groups == 1 and self.weight.requires_grad and self.weight.grad is not None:
            self.weight.grad.addmm_(grad_linear.t(), x)
        else:
            accumulate(self.weight, regroup(grad_linear.t() @ x, self.groups, -1))
        return grad_linear

    def grad_input(self, grad_linear: Tensor, columns: int | None = None) -> Tensor:
        """The gradient of x, or of its first columns, from that of x W^T."""
        return grad_linear @ (self.used if columns in (None, self.used.shape[1]) else self.used[:, :columns])


def find_norm_blocks(mlp: nn.Module, last_norm: nn.Module, training: bool) -> list[NormBlock]:
    """The MLP of a layer and the normalisation after it as blocks; empty where they are not fusible in this mode."""
    if type(mlp) is not MLP or training and any(step.p for step in mlp if isinstance(step, nn.Dropout)):
        return []
    steps = [step for step in mlp if not isinstance(step, nn.Dropout)]
    linears, norms, activations = steps[::3], [*steps[1::3], last_norm], steps[2::3]
    fusible = (
        len(linears) == len(norms)
        and all(type(linear) is nn.Linear for linear in linears)
        and all(type(activation) is nn.ReLU for activation in activations)
        and all(type(norm) is BatchNorm and norm.training == training for norm in norms)
        and all(norm.running_mean is not None and norm.momentum is not None for norm in norms)
    )
    return [NormBlock(*pair) for pair in zip(linears, norms, strict=True)] if fusible else []


def regroup(weight: Tensor, rows: int, columns: int) -> Tensor:
    """Columns counted as rows × columns to columns × rows, of which one is -1 and one the number of groups."""
    if 1 in (rows, columns):
        return weight
    return weight.unflatten(1, (rows, columns)).transpose(1, 2).flatten(1)


def accumulate(parameter: Tensor, grad: Tensor) -> None:
    """Add a gradient to `parameter.grad`."""
    if not parameter.requires_grad:
        return
    if parameter.grad is None:
        parameter.grad = grad
    else:
        parameter.grad.add_(grad)


class StackedEdgeMLPs:
    """The edge parts Σ MLP₂(e_ij) of all layers of EGIN-E at once, as batched products: M MLPs of the same sizes."""

    def __init__(self, mlps: Sequence[MLP]):
        self.levels, self.count = list(zip(*map(linears, mlps), strict=True)), len(mlps)

    @classmethod
    def build(cls, layers: Sequence[FastLayer]) -> "StackedEdgeMLPs | None":
        """None unless all are layers of EGIN-E with ε = 0, whose edge MLPs have equal sizes, no norm and no dropout."""
        if not all(type(layer) is FastEGINE and not layer.has_eps for layer in layers):
            return None
        mlps = [layer.layer.edge_mlp for layer in layers]
        if not all(type(mlp) is MLP and all(map(is_rowwise, mlp)) for mlp in mlps):
            return None
        shapes = {tuple(linear.weight.shape for linear in linears(mlp)) for mlp in mlps}
        return cls(mlps) if len(shapes) == 1 else None

    @torch.no_grad()
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

    @torch.no_grad()
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


def linears(mlp: MLP) -> list[nn.Linear]:
    return [step for step in mlp if isinstance(step, nn.Linear)]
