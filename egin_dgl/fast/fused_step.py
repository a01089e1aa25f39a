"""A forward and backward pass through GIN or the EGIN family as one function, with the gradient written by hand.

On batches of small graphs most of the time of a step is the overhead of many small operations. This takes a third of the
operations of the layers. The objects hold what the gradient of one pass needs: a pass ends before the next begins.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from egin_dgl.fast.dedup import DistinctRows
from egin_dgl.fast.layers import FastLayer
from egin_dgl.fast.norm_block import NormBlock, accumulate
from egin_dgl.fast.sparse_sums import BatchSums, LinearMap
from egin_dgl.fast.stacked_mlps import StackedEdgeMLPs
from egin_dgl.models.dispatch import LossFn

BlockForward = Callable[[NormBlock, Tensor, int], Tensor]


class FusedLayer:
    """A sum over neighbors and the blocks after it: (N, D) -> (N, H)."""

    def __init__(self, layer: FastLayer, blocks: list[NormBlock]):
        self.layer, self.blocks = layer, blocks
        self.eps, self.has_eps = layer.eps, layer.has_eps

    edge_part: Any  # a Tensor or None
    grad_edge_part: Tensor

    def load(
        self, neighbor_sum: LinearMap, edge_part: Tensor | None, self_rows: Tensor | None = None
    ) -> None:
        """Set what the next pass sums. self_rows: the row of each node itself in h, where it is not the same row."""
        self.neighbor_sum, self.edge_part, self.self_rows = neighbor_sum, edge_part, self_rows
        self.learns_edges = edge_part is not None and edge_part.requires_grad

    def forward(self, h: Tensor, forward_block: BlockForward = NormBlock.forward) -> Tensor:
        summed = self.neighbor_sum.apply(h)
        h_self = h if self.self_rows is None else h.index_select(0, self.self_rows)
        groups = len(summed) // len(h_self)
        x = summed.view(len(h_self), -1)
        if self.has_eps:
            x.add_((self.eps * h_self).repeat(1, groups))
        self.saved = h, groups, x.shape[1]
        if self.edge_part is not None:
            x = torch.cat([x, self.edge_part], dim=1)
        first, *others = self.blocks
        x = forward_block(first, x, groups)
        for block in others:
            x = forward_block(block, x, 1)
        return x

    def backward(self, grad: Tensor, needs_input: bool) -> Tensor | None:
        """Accumulate the gradients of the parameters, and return that of h if needed; `grad_edge_part` holds that of c."""
        h, groups, dim = self.saved
        first, *others = self.blocks
        for block in reversed(others):
            grad = block.grad_input(block.backward(grad))
        grad_linear = first.backward(grad)
        grad_h = None
        if needs_input or self.has_eps or self.learns_edges:
            grad_x = first.grad_input(grad_linear, None if self.learns_edges else dim)
            if self.learns_edges:
                grad_x, self.grad_edge_part = grad_x.tensor_split([dim], dim=1)
            if needs_input:
                grad_h = self.neighbor_sum.apply_transpose(grad_x.reshape(len(h) * groups, -1))
            if self.has_eps:
                grad_self = grad_x.reshape(len(h), groups, -1).sum(1)
                accumulate(self.eps, (grad_self * h).sum().view_as(self.eps))
                grad_h = None if grad_h is None else grad_h.add_(self.eps * grad_self)
        return grad_h


class FusedHeads:
    """From the pooled sums of all depths to logits: Σ_k dropout(W_k s readout(h_k) + b_k)."""

    def __init__(self, heads: Sequence[nn.Linear], dropout: float):
        self.weights: list[Tensor] = [head.weight for head in heads]
        self.biases: list[Tensor] = [head.bias for head in heads]
        self.dropout = dropout

    def forward(self, pooled: list[Tensor], factor: Tensor | float) -> Tensor:
        """factor: s, and 1 / size for a mean; the sums are overwritten."""
        self.factor, self.readouts = factor, [sums.mul_(factor) for sums in pooled]
        logits = torch.stack([r @ w.t() for r, w in zip(self.readouts, self.weights, strict=True)])
        logits.add_(torch.stack(self.biases).unsqueeze(1))
        self.mask: Tensor | None = None
        if not self.dropout:
            return logits.sum(0)
        keep = 1 - self.dropout
        self.mask = torch.empty_like(logits).bernoulli_(keep).div_(keep)
        return logits.mul_(self.mask).sum(0)

    def backward(self, grad: Tensor) -> list[Tensor]:
        """Accumulate the gradients of the parameters, and return those of the sums of all depths but the input."""
        grads = grad.expand(len(self.weights), *grad.shape) if self.mask is None else self.mask * grad
        by_depth = grads.unbind()
        for parameter, found in zip(self.biases, grads.sum(1).unbind(), strict=True):
            accumulate(parameter, found)
        for weight, found, readout in zip(self.weights, by_depth, self.readouts, strict=True):
            accumulate(weight, found.t() @ readout)
        return [
            (found @ weight).mul_(self.factor)
            for found, weight in zip(by_depth[1:], self.weights[1:], strict=True)
        ]


class FusedNetwork:
    """A model as fused layers and heads, valid as long as its modules do not change.

    Args:
        layers: message-passing layers with their blocks.
        heads: from the readouts of all depths to logits.
        pooling_factor: what the sums over the nodes of each graph are multiplied by.
    """

    def __init__(
        self,
        layers: list[FusedLayer],
        heads: FusedHeads,
        pooling_factor: Callable[[BatchSums], Tensor | float],
    ):
        self.layers, self.heads, self.pooling_factor = layers, heads, pooling_factor
        self.edge_mlps = StackedEdgeMLPs.build([layer.layer for layer in layers])

    def load(self, sums: BatchSums) -> None:
        """Set the batch of the next pass."""
        if self.edge_mlps is not None:
            with torch.no_grad():
                edge_parts: Sequence[Tensor | None] = self.edge_mlps.forward(sums)
        else:
            edge_parts = [layer.layer.edge_part(sums) for layer in self.layers]
        for layer, edge_part in zip(self.layers, edge_parts, strict=True):
            layer.load(layer.layer.neighbor_sum(sums), edge_part)
            layer.learns_edges |= self.edge_mlps is not None

    def train_step(self, sums: BatchSums, loss_fn: LossFn) -> tuple[Tensor, Tensor]:
        """Loss and logits of a batch in training mode; the gradients are added to those of the weights."""
        self.load(sums)
        with torch.no_grad():
            depths = [sums.node_feats]
            for layer in self.layers:
                depths.append(layer.forward(depths[-1]))
            pool = sums.over_graphs
            logits = self.heads.forward([pool.apply(h) for h in depths], self.pooling_factor(sums))
            loss, grad_logits = loss_fn(logits)
            grad_pooled = self.heads.backward(grad_logits)
            grad: Tensor | None = None  # of the nodes, from the layer above
            for depth, layer in reversed(list(enumerate(self.layers))):
                grad_nodes = pool.apply_transpose(grad_pooled[depth])
                grad = layer.backward(grad_nodes if grad is None else grad.add_(grad_nodes), depth > 0)
        self.backward_edge_parts()
        return loss, logits

    def backward_edge_parts(self) -> None:
        learned = [layer for layer in self.layers if layer.learns_edges]
        grads = [layer.grad_edge_part for layer in learned]
        if self.edge_mlps is not None:
            with torch.no_grad():
                self.edge_mlps.backward(grads)
        elif learned:
            torch.autograd.backward([layer.edge_part for layer in learned], grads)

    def forward_precise(self, sums: BatchSums, num_rows: int, rows: DistinctRows | None) -> Tensor:
        """Logits in evaluation mode; every BatchNorm is set to the statistics of the first `num_rows` nodes.

        rows: the distinct rows of the batch, of which each is computed once.
        """
        self.load(sums)
        h = sums.node_feats if rows is None else sums.node_feats.index_select(0, rows.depths[0].nodes)
        pooled = [pool_rows(sums, rows, 0, h)]
        for depth, layer in enumerate(self.layers, start=1):
            shares: Tensor | int = num_rows
            if rows is not None:
                layer.load(*rows.layer_inputs(layer.neighbor_sum, layer.edge_part, depth))
                shares = rows.depths[depth].shares

            def forward_block(block: NormBlock, x: Tensor, groups: int, shares=shares) -> Tensor:
                return block.forward_precise(x, groups, shares)

            h = layer.forward(h, forward_block)
            pooled.append(pool_rows(sums, rows, depth, h))
        return self.heads.forward(pooled, self.pooling_factor(sums))


def pool_rows(sums: BatchSums, rows: DistinctRows | None, depth: int, h: Tensor) -> Tensor:
    return sums.over_graphs.apply(h) if rows is None else rows.pool(sums.members, depth, h)
