"""A model of sums and plain blocks as one function, forward and backward, its gradient written by hand.

The objects hold on to what the gradient of one pass needs, so that each pass through a network ends before the next begins.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from egin_dgl.data.loader import CSR, Batch
from egin_dgl.layers.sum_layer import Messages, SumLayer
from egin_dgl.layers.sums import Sums, pooled
from egin_dgl.models.distinct import Distinct
from egin_dgl.models.norm_block import NormBlock


class Layer:
    """A sum over neighbours and the blocks after it: (N, D) -> (N, H)."""

    def __init__(self, layer: SumLayer, blocks: list[NormBlock]):
        self.eps, self.has_eps, self.blocks = layer.epsilon(), layer.has_eps(), blocks

    def read(self, messages: Messages) -> None:
        """What is summed in the pass to come."""
        self.sums, self.edge_half, self.learnt = messages
        self.own: Tensor | None = None  # where the nodes themselves are in h, if not in the same place

    def onto(self, rows: Distinct, depth: int) -> None:
        """From the distinct rows of the depth before to those of this depth."""
        if self.sums.bags is None:
            raise ValueError("these sums are no sparse matrix")
        count = len(rows.depths[0].row)
        self.sums = rows.sums(self.sums.bags, depth, len(self.sums.bags.starts) // count)
        self.own = rows.own(depth)
        if self.edge_half is not None:
            self.edge_half = self.edge_half.index_select(0, rows.depths[depth].nodes)

    def parameters(self) -> list[Tensor | None]:
        return [self.eps, self.edge_half, *(p for block in self.blocks for p in block.parameters())]

    def forward(self, h: Tensor, through: Callable = NormBlock.forward) -> Tensor:
        """`through(block, x, weight)` is how a block is computed."""
        summed = self.sums.apply(h)
        nodes = len(h if self.own is None else self.own)
        rows = len(summed) // nodes
        x = summed.view(nodes, -1)
        if self.has_eps:
            own = h if self.own is None else h.index_select(0, self.own)
            x.add_((self.eps * own).repeat(1, rows))
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

    def backward(self, grad: Tensor, to_nodes: bool, add: bool) -> tuple[Tensor | None, list[Tensor | None]]:
        """The gradient of h, where it is asked for, and those of the parameters, as a block gives them."""
        h, rows, dim = self.saved
        first, *others = self.blocks
        of_others: list[Tensor | None] = []
        for block in reversed(others):
            to_linear, found = block.backward(grad, add)
            grad, of_others = block.to_input(to_linear), found + of_others
        to_linear, of_first = first.backward(grad, add and rows == 1)
        if rows > 1 and of_first[0] is not None:
            of_first[0] = of_first[0].unflatten(1, (rows, -1)).transpose(1, 2).flatten(1)
        to_eps = to_edges = to_h = None
        to_edge_half = self.edge_half is not None and (
            self.edge_half.requires_grad or self.learnt is not None
        )
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
        self.to_edges = to_edges
        return to_h, [to_eps, to_edges, *of_first, *of_others]


class Scores:
    """From the nodes of all depths to class scores: Σ_k dropout(W_k s readout(h_k) + b_k)."""

    def __init__(self, maps: Sequence[nn.Linear], dropout: float):
        self.weights: list[Tensor] = [f.weight for f in maps]
        self.biases: list[Tensor] = [f.bias for f in maps]
        self.dropout = dropout

    def read(self, pool: Sums, factor: Tensor | float) -> None:
        """How the nodes of the pass to come are summed, and what a sum is multiplied by: s, and 1 / size for a mean."""
        self.pool, self.factor = pool, factor

    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.biases]

    def forward(self, depths: list[Tensor]) -> Tensor:
        return self.of_sums([self.pool.apply(h) for h in depths])

    def of_sums(self, sums: list[Tensor]) -> Tensor:
        """From the sums over the nodes of each graph."""
        self.readouts = readouts = [of_graphs.mul_(self.factor) for of_graphs in sums]
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
    """A model read once, for passes over batches one after another, as long as its modules stay what they are.

    Args:
        layers: each with its blocks.
        scores: what is made of their results.
        messages_of: what each layer sums on a batch.
        factor_of: what the sums over the nodes of each graph are multiplied by.
    """

    def __init__(
        self,
        layers: list[Layer],
        scores: Scores,
        messages_of: Callable[[Batch], Sequence[Messages]],
        factor_of: Callable[[Batch], Tensor | float],
    ):
        self.layers, self.scores, self.messages_of, self.factor_of = layers, scores, messages_of, factor_of
        self.running = [block.running for layer in layers for block in layer.blocks]
        self.biases = [block.bias for layer in layers for block in layer.blocks]

    def read(self, batch: Batch) -> None:
        """The next pass is over this batch."""
        for layer, messages in zip(self.layers, self.messages_of(batch), strict=True):
            layer.read(messages)
        self.scores.read(pooled(batch), self.factor_of(batch))
        self.node_feats = batch.node_feats

    def parameters(self) -> list[Tensor | None]:
        """All that has a gradient: parameters, and what the layers put beside the sums of node features."""
        return [*(p for layer in self.layers for p in layer.parameters()), *self.scores.parameters()]

    def all_parameters(self) -> list[Tensor | None]:
        """These, and what the layers' edge halves were computed by."""
        learnt = self.layers[0].learnt
        return [*self.parameters(), *(learnt.parameters() if learnt else [])]

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
            depths.append(layer.forward(depths[-1], partial(NormBlock.measured, shares=rows)))
        return self.scores.forward(depths)

    def measured_on(self, rows: Distinct, members: CSR) -> Tensor:
        """The same, computing each of the rows that the nodes are distinct in once."""
        h = self.node_feats.index_select(0, rows.depths[0].nodes)
        sums = [rows.pool(members, 0, h)]
        for depth, layer in enumerate(self.layers, start=1):
            layer.onto(rows, depth)
            h = layer.forward(h, partial(NormBlock.measured, shares=rows.depths[depth].shares))
            sums.append(rows.pool(members, depth, h))
        return self.scores.of_sums(sums)

    def follow_statistics(self) -> None:
        """What is left of keeping the running statistics: the bias in the mean, and how many batches there were."""
        torch._foreach_add_([running.batches for running in self.running], 1)
        for running, bias in zip(self.running, self.biases, strict=True):
            running.mean.add_(bias, alpha=running.momentum)

    def backward(self, grad: Tensor, add: bool = False) -> list[Tensor | None]:
        """The gradients of `parameters`; None is zero, or where `add`, added to the parameter's own already."""
        to_readouts, of_scores = self.scores.backward(grad)
        of_layers: list[Tensor | None] = []
        above: Tensor | None = None  # the gradient that the layer after this one passes down
        for depth, layer in reversed(list(enumerate(self.layers))):
            to_nodes = self.scores.pool.transposed(to_readouts[depth])
            above, found = layer.backward(to_nodes if above is None else above.add_(to_nodes), depth > 0, add)
            of_layers = found + of_layers
        return [*of_layers, *of_scores]

    def add_gradients(self, grad: Tensor) -> None:
        """Add the gradients to `.grad` of the parameters, and of what the layers' own edge halves were computed from.

        What autograd does with the result of `backward`, for a tenth of a step less.
        """
        sums, added, halves, to_halves = [], [], [], []
        gradients, learnt = self.backward(grad, add=True), self.layers[0].learnt
        if learnt:
            gradients += learnt.gradients([to for layer in self.layers if (to := layer.to_edges) is not None])
        for parameter, found in zip(self.all_parameters(), gradients, strict=True):
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
        if sums:
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
