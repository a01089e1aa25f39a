"""Linear map, batch normalisation and ReLU as one step: forward, evaluated with statistics of its own rows, backward."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from egin_dgl.layers.mlp import BatchNorm

# The gradients that autograd itself would call.
relu_backward = torch.ops.aten.threshold_backward.grad_input
norm_backward = torch.ops.aten.native_batch_norm_backward.default


class Running(NamedTuple):
    """The running statistics of a batch normalisation, and how fast they follow."""

    mean: Tensor
    variance: Tensor
    batches: Tensor
    momentum: float


class NormBlock:
    r"""y = ReLU(norm(x W^T)).

    A bias before batch normalisation is subtracted again with the mean: it moves the running mean, and has no gradient.
    """

    def __init__(self, linear: nn.Linear, norm: BatchNorm, running: Running):
        self.weight, self.bias = linear.weight, linear.bias
        self.scale, self.shift, self.eps = norm.weight, norm.bias, norm.eps
        self.running = running

    def parameters(self) -> list[Tensor]:
        return [self.weight, self.bias, self.scale, self.shift]

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        """(N, D) -> (N, H), for this block's weight or one with its columns in another order."""
        linear = x @ weight.t()
        mean, variance, _, momentum = self.running
        y, batch_mean, inverse = torch.native_batch_norm(
            linear, self.scale, self.shift, mean, variance, True, momentum, self.eps
        )
        self.used = weight
        self.saved = x, linear, batch_mean, inverse, y.relu_()
        return y

    def measured(self, x: Tensor, weight: Tensor, shares: Tensor | int) -> Tensor:
        """The same in evaluation, with the mean and variance of the first rows, which become the running ones."""
        linear = x @ weight.t()
        rows = shares if isinstance(shares, int) else len(shares)
        mean = mean_of(linear[:rows], shares)
        variance = mean_of(linear.sub_(mean)[:rows].square(), shares)
        torch.add(mean, self.bias, out=self.running.mean)
        self.running.variance.copy_(variance)
        factor = self.scale * variance.add_(self.eps).rsqrt_()
        return torch.addcmul(self.shift, linear, factor, out=linear).relu_()

    def backward(self, grad: Tensor, add: bool) -> tuple[Tensor, list[Tensor | None]]:
        """The gradient of x W^T, and those of the parameters; None is zero, or where `add`, added already.

        `grad` is written over, and what was kept for this is let go, so that the next result finds room that is still
        in the cache.
        """
        x, linear, mean, inverse, y = self.saved
        del self.saved
        statistics = self.running.mean, self.running.variance, mean, inverse
        relu_backward(grad, y, 0, grad_input=grad)
        del y
        to_linear, to_scale, to_shift = norm_backward(
            grad, linear, self.scale, *statistics, True, self.eps, [True, True, True]
        )
        to_weight = None
        if add and self.weight.requires_grad and self.weight.grad is not None:
            self.weight.grad.addmm_(to_linear.t(), x)
        else:
            to_weight = to_linear.t() @ x
        return to_linear, [to_weight, None, to_scale, to_shift]

    def to_input(self, to_linear: Tensor, columns: int | None = None) -> Tensor:
        """The gradient of x, or of its first columns, from that of x W^T."""
        return to_linear @ (self.used if columns in (None, self.used.shape[1]) else self.used[:, :columns])


def mean_of(rows: Tensor, shares: Tensor | int) -> Tensor:
    """The mean of rows (R, D) that stand for R or, each for its share (R, 1), for more."""
    return rows.mean(0) if isinstance(shares, int) else (rows * shares).sum(0)
