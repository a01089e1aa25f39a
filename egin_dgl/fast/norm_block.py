"""Linear map, batch normalisation and ReLU as one block, with its gradient written by hand."""

from typing import Any

import torch
from torch import Tensor, nn

from egin_dgl.layers.mlp import BatchNorm

# The operations that autograd calls.
relu_backward = torch.ops.aten.threshold_backward.grad_input
norm_backward = torch.ops.aten.native_batch_norm_backward.default


class NormBlock:
    r"""y = ReLU(norm(x W^T)).

    A bias before batch normalisation is subtracted with the mean: it changes the running mean, and has no gradient.

    Args:
        linear: W and the bias.
        norm: a BatchNorm with running statistics and a momentum.
    """

    def __init__(self, linear: nn.Linear, norm: Any):
        self.weight, self.bias = linear.weight, linear.bias
        self.scale, self.shift, self.eps = norm.weight, norm.bias, norm.eps
        self.running_mean, self.running_var = norm.running_mean, norm.running_var
        self.num_batches, self.momentum = norm.num_batches_tracked, norm.momentum

    @classmethod
    def build(cls, linear: nn.Module, norm: nn.Module, training: bool) -> "NormBlock | None":
        """None where the two are other modules, or in the other mode."""
        if type(linear) is not nn.Linear or type(norm) is not BatchNorm or norm.training != training:
            return None
        return None if norm.running_mean is None or norm.momentum is None else cls(linear, norm)

    def forward(self, x: Tensor, groups: int = 1) -> Tensor:
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

    def forward_precise(self, x: Tensor, groups: int, shares: Tensor | int) -> Tensor:
        """In evaluation mode, after setting the running statistics to mean and variance of the first rows.

        shares: number of these rows, or (R, 1): the share that each of the first R rows has in the mean.
        """
        linear = x @ regroup(self.weight, -1, groups).t()
        num_rows = shares if isinstance(shares, int) else len(shares)
        mean = weighted_mean(linear[:num_rows], shares)
        variance = weighted_mean(linear.sub_(mean)[:num_rows].square(), shares)
        torch.add(mean, self.bias, out=self.running_mean)
        self.running_var.copy_(variance)
        factor = self.scale * variance.add_(self.eps).rsqrt_()
        return torch.addcmul(self.shift, linear, factor, out=linear).relu_()

    def backward(self, grad: Tensor) -> Tensor:
        """Accumulate the gradients of the parameters, and return that of x W^T.

        `grad` is overwritten, and saved tensors are released at once, so that the next result finds memory in the cache.
        """
        x, linear, mean, inverse, y = self.saved
        del self.saved
        statistics = self.running_mean, self.running_var, mean, inverse
        relu_backward(grad, y, 0, grad_input=grad)
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


def regroup(weight: Tensor, rows: int, columns: int) -> Tensor:
    """Columns counted as rows × columns to columns × rows, of which one is -1 and one the number of groups."""
    if 1 in (rows, columns):
        return weight
    return weight.unflatten(1, (rows, columns)).transpose(1, 2).flatten(1)


def weighted_mean(rows: Tensor, shares: Tensor | int) -> Tensor:
    """The mean of rows (R, D), each weighted by its share (R, 1) where shares are given."""
    return rows.mean(0) if isinstance(shares, int) else (rows * shares).sum(0)


def accumulate(parameter: Tensor, grad: Tensor) -> None:
    """Add a gradient to `parameter.grad`."""
    if not parameter.requires_grad:
        return
    if parameter.grad is None:
        parameter.grad = grad
    else:
        parameter.grad.add_(grad)
