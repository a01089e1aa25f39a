"""A model of sums and plain blocks as one function, forward and backward, its gradient written by hand.

Made anew for each step: the objects hold on to what the gradient needs.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from egin_dgl.layers.mlp import BatchNorm
from egin_dgl.layers.sum_layer import Messages, SumLayer
from egin_dgl.layers.sums import Sums

# The gradients that autograd itself would call.
relu_backward = torch.ops.aten.threshold_backward.default
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
        self.saved = x, weight, linear, batch_mean, inverse, y.relu_()
        return y

    def measured(self, x: Tensor, weight: Tensor, rows: int) -> Tensor:
        """The same in evaluation, with the mean and variance of the first `rows` rows, which become the running ones."""
        linear = x @ weight.t()
        mean = linear[:rows].mean(0)
        variance = linear.sub_(mean)[:rows].square().mean(0)
        torch.add(mean, self.bias, out=self.running.mean)
        self.running.variance.copy_(variance)
        factor = self.scale * variance.add_(self.eps).rsqrt_()
        return torch.addcmul(self.shift, linear, factor, out=linear).relu_()

    def backward(self, grad: Tensor) -> tuple[Tensor, list[Tensor | None]]:
        """The gradient of x W^T, and those of the parameters; None is zero."""
        x, _, linear, mean, inverse, y = self.saved
        statistics = self.running.mean, self.running.variance, mean, inverse
        to_linear, to_scale, to_shift = norm_backward(
            relu_backward(grad, y, 0), linear, self.scale, *statistics, True, self.eps, [True, True, True]
        )
        return to_linear, [to_linear.t() @ x, None, to_scale, to_shift]

    def to_input(self, to_linear: Tensor, columns: int | None = None) -> Tensor:
        """The gradient of x, or of its first columns, from that of x W^T."""
        _, weight, *_ = self.saved
        return to_linear @ (weight if columns in (None, weight.shape[1]) else weight[:, :columns])


class Layer:
    """A sum over neighbours and the blocks after it: (N, D) -> (N, H)."""

    def __init__(self, layer: SumLayer, blocks: list[NormBlock], messages: Messages):
        self.eps, self.has_eps, self.blocks = layer.epsilon(), layer.has_eps(), blocks
        self.sums, self.edge_half = messages

    def parameters(self) -> list[Tensor | None]:
        return [self.eps, self.edge_half, *(p for block in self.blocks for p in block.parameters())]

    def forward(self, h: Tensor, through: Callable = NormBlock.forward) -> Tensor:
        """`through(block, x, weight)` is how a block is computed."""
        summed = self.sums.apply(h)
        rows = len(summed) // len(h)
        x = summed.view(len(h), -1)
        if self.has_eps:
            x.add_((self.eps * h).repeat(1, rows))
        self.saved = h, rows, x.shape[1]
        first, *others = self.blocks
        weight = first.weight
        if rows > 1:  # here the rows of a node come one after another; the weight counts its features first
            weight = weight.unflatten(1, (-1, rows)).transpose(1, 2).flatten(1)
        elif self.edge_half is not None:
            x = torch.cat([x, self.edge_half], dim=1)
        x = through(first, x, weight)
        for block in others:
            x = through(block, x, block.weight)
        return x

    def backward(self, grad: Tensor, to_nodes: bool) -> tuple[Tensor | None, list[Tensor | None]]:
        """The gradient of h, where it is asked for, and those of the parameters."""
        h, rows, dim = self.saved
        first, *others = self.blocks
        of_others: list[Tensor | None] = []
        for block in reversed(others):
            to_linear, found = block.backward(grad)
            grad, of_others = block.to_input(to_linear), found + of_others
        to_linear, of_first = first.backward(grad)
        if rows > 1 and of_first[0] is not None:
            of_first[0] = of_first[0].unflatten(1, (rows, -1)).transpose(1, 2).flatten(1)
        to_eps = to_edges = to_h = None
        to_edge_half = self.edge_half is not None and self.edge_half.requires_grad
        if to_nodes or self.has_eps or to_edge_half:
            to_x = first.to_input(to_linear, None if to_edge_half else dim)
            if to_edge_half:
                to_x, to_edges = to_x.tensor_split([dim], dim=1)
            if to_nodes:
                to_h = self.sums.transposed(to_x.reshape(len(h) * rows, -1))
            if self.has_eps:
                own = to_x.reshape(len(h), rows, -1).sum(1)
                to_eps = (own * h).sum().view_as(self.eps)
                to_h = None if to_h is None else to_h.add_(self.eps * own)
        return to_h, [to_eps, to_edges, *of_first, *of_others]


class Scores:
    """From the nodes of all depths to class scores: Σ_k dropout(W_k s readout(h_k) + b_k)."""

    def __init__(self, maps: Sequence[nn.Linear], pool: Sums, factor: Tensor | float, dropout: float):
        self.weights: list[Tensor] = [f.weight for f in maps]
        self.biases: list[Tensor] = [f.bias for f in maps]
        self.pool = pool
        self.factor = factor  # what a sum over nodes is multiplied by: s, and 1 / size for a mean
        self.dropout = dropout

    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.biases]

    def forward(self, depths: list[Tensor]) -> Tensor:
        self.readouts = readouts = [self.pool.apply(h).mul_(self.factor) for h in depths]
        scores = torch.stack([r @ weight.t() for r, weight in zip(readouts, self.weights, strict=True)])
        scores.add_(torch.stack(self.biases).unsqueeze(1))
        self.mask: Tensor | None = None
        if not self.dropout:
            return scores.sum(0)
        keep = 1 - self.dropout
        self.mask = torch.empty_like(scores).bernoulli_(keep).div_(keep)
        return scores.mul_(self.mask).sum(0)

    def backward(self, grad: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """The gradients of the readouts of all depths but the input, and those of the parameters."""
        to_scores = grad.expand(len(self.weights), *grad.shape) if self.mask is None else self.mask * grad
        by_depth = to_scores.unbind()
        to_weights = [g.t() @ readout for g, readout in zip(by_depth, self.readouts, strict=True)]
        to_readouts = [
            (g @ weight).mul_(self.factor) for g, weight in zip(by_depth[1:], self.weights[1:], strict=True)
        ]
        return to_readouts, [*to_weights, *to_scores.sum(1).unbind()]


class Network:
    """One forward pass of a model and what its gradient needs."""

    def __init__(self, layers: list[Layer], scores: Scores, node_feats: Tensor):
        self.layers, self.scores, self.node_feats = layers, scores, node_feats

    def parameters(self) -> list[Tensor | None]:
        """All that has a gradient: parameters, and what the layers put beside the sums of node features."""
        return [*(p for layer in self.layers for p in layer.parameters()), *self.scores.parameters()]

    def forward(self) -> Tensor:
        depths = [self.node_feats]
        for layer in self.layers:
            depths.append(layer.forward(depths[-1]))
        self.follow_statistics()
        return self.scores.forward(depths)

    def measured(self, rows: int) -> Tensor:
        """In evaluation, every block with the statistics of the first `rows` nodes."""
        depths = [self.node_feats]
        for layer in self.layers:
            depths.append(layer.forward(depths[-1], partial(NormBlock.measured, rows=rows)))
        return self.scores.forward(depths)

    def follow_statistics(self) -> None:
        """What is left of keeping the running statistics: the bias in the mean, and how many batches there were."""
        blocks = [block for layer in self.layers for block in layer.blocks]
        torch._foreach_add_([block.running.batches for block in blocks], 1)
        for block in blocks:
            block.running.mean.add_(block.bias, alpha=block.running.momentum)

    def backward(self, grad: Tensor) -> list[Tensor | None]:
        """The gradients of `parameters`; None is zero."""
        to_readouts, of_scores = self.scores.backward(grad)
        of_layers: list[Tensor | None] = []
        above: Tensor | None = None  # the gradient that the layer after this one passes down
        for depth, layer in reversed(list(enumerate(self.layers))):
            to_nodes = self.scores.pool.transposed(to_readouts[depth])
            above, found = layer.backward(to_nodes if above is None else above.add_(to_nodes), depth > 0)
            of_layers = found + of_layers
        return [*of_layers, *of_scores]

    def add_gradients(self, grad: Tensor) -> None:
        """Add the gradients to `.grad` of the parameters, and of what the layers' own edge halves were computed from.

        What autograd does with the result of `backward`, for a tenth of a step less.
        """
        sums, added, halves, to_halves = [], [], [], []
        for parameter, found in zip(self.parameters(), self.backward(grad), strict=True):
            if parameter is None or found is None or not parameter.requires_grad:
                continue
            if not parameter.is_leaf:
                halves.append(parameter)
                to_halves.append(found)
            elif parameter.grad is None:
                parameter.grad = found
            else:
                sums.append(parameter.grad)
                added.append(found)
        torch._foreach_add_(sums, added)
        if halves:
            torch.autograd.backward(halves, to_halves)


class Fused(torch.autograd.Function):
    """The network as one operation of its parameters."""

    @staticmethod
    def forward(ctx, network: Network, *parameters: Tensor | None) -> Tensor:
        ctx.network = network
        return network.forward()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        found = zip(ctx.network.parameters(), ctx.network.backward(grad), strict=True)
        return None, *(torch.zeros_like(p) if g is None and is_weight(p) else g for p, g in found)


def is_weight(parameter: Tensor | None) -> bool:
    return isinstance(parameter, nn.Parameter) and parameter.requires_grad
