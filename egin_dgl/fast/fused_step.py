"""A forward and backward pass through GIN or the EGIN family as one function, with the gradient written by hand.

On batches of small graphs most of the time of a step is the overhead of many small operations. This takes a third of the
operations of the layers. The objects hold what the gradient of one pass needs: a pass ends before the next begins.
"""

from typing import Any

import torch
from torch import Tensor

from egin_dgl.fast.fused_blocks import NormBlock, StackedEdgeMLPs, accumulate
from egin_dgl.fast.layers import FastEGINM, FastLayer, LayerInputs
from egin_dgl.fast.sparse_sums import BatchSums
from egin_dgl.layers.readout import MeanPooling
from egin_dgl.models.classifier import GraphClassifier
from egin_dgl.models.dispatch import LossFn


class FusedLayer:
    """A sum over neighbors and the blocks after it: (N, D) -> (N, H)."""

    def __init__(self, layer: FastLayer, blocks: list[NormBlock], training: bool):
        self.layer, self.blocks, self.training = layer, blocks, training

    def forward(self, h: Tensor, inputs: LayerInputs) -> Tensor:
        x, groups = self.aggregate(h, inputs)
        first, *others = self.blocks
        x = first.forward(x, groups)
        for block in others:
            x = block.forward(x, 1)
        return x

    def aggregate(self, h: Tensor, inputs: LayerInputs) -> tuple[Tensor, int]:
        """What the first block receives, and in how many groups its columns are."""
        summed = inputs.neighbor_sum.apply(h)
        groups = len(summed) // len(h)
        x = summed.view(len(h), -1)
        if self.layer.has_eps:
            x.add_((self.layer.eps * h).repeat(1, groups))
        self.saved = h, inputs, groups, x.shape[1]
        if inputs.edge_part is not None:
            x = torch.cat([x, inputs.edge_part], dim=1)
        return x, groups

    def backward(
        self, grad: Tensor, needs_input: bool, learns_edges: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """Accumulate the gradients of the parameters, and return those of h and of the edge part where needed."""
        first, *others = self.blocks
        for block in reversed(others):
            grad = block.grad_input(block.backward(grad))
        return self.aggregate_backward(first.backward(grad), needs_input, learns_edges)

    def aggregate_backward(
        self, grad_linear: Tensor, needs_input: bool, learns_edges: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """From the gradient of x W^T in the first block to those that `backward` returns."""
        h, inputs, groups, dim = self.saved
        first = self.blocks[0]
        grad_h = grad_edges = None
        if needs_input or self.layer.has_eps or learns_edges:
            grad_x = first.grad_input(grad_linear, None if learns_edges else dim)
            if learns_edges:
                grad_x, grad_edges = grad_x.tensor_split([dim], dim=1)
            if needs_input:
                grad_h = inputs.neighbor_sum.apply_transpose(grad_x.reshape(len(h) * groups, -1))
            if self.layer.has_eps:
                eps, grad_self = self.layer.eps, grad_x.reshape(len(h), groups, -1).sum(1)
                accumulate(eps, (grad_self * h).sum().view_as(eps))
                grad_h = None if grad_h is None else grad_h.add_(eps * grad_self)
        return grad_h, grad_edges


class FusedTupleLayer(FusedLayer):
    """A sum of MLP₂ over node-edge tuples, differentiated by autograd, and the blocks after it."""

    layer: FastEGINM

    def aggregate(self, h: Tensor, inputs: LayerInputs) -> tuple[Tensor, int]:
        assert inputs.tuples is not None
        with torch.set_grad_enabled(self.training):
            self.leaf = h.detach().requires_grad_()
            self.summed = self.layer.sum_tuples(self.leaf, inputs.tuples)
        return self.summed.detach(), 1

    def aggregate_backward(
        self, grad_linear: Tensor, needs_input: bool, learns_edges: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        self.summed.backward(self.blocks[0].grad_input(grad_linear))
        grad_h = self.leaf.grad if needs_input else None
        del self.summed, self.leaf
        return grad_h, None


class FusedHeads:
    """From the pooled sums of all depths to logits: Σ_k dropout(W_k s readout(h_k) + b_k)."""

    def __init__(self, model: GraphClassifier):
        heads: list[Any] = list(model.heads)
        self.weights: list[Tensor] = [head.weight for head in heads]
        self.biases: list[Tensor] = [head.bias for head in heads]
        self.dropout = model.dropout.p if model.dropout.training else 0.0
        self.is_mean, self.scale = type(model.readout) is MeanPooling, model.scale

    def forward(self, sums: BatchSums, pooled: list[Tensor]) -> Tensor:
        """The sums are overwritten."""
        self.factor: Tensor | float = self.scale
        if self.is_mean:
            self.factor = 1 / sums.num_nodes.clamp(min=1).to(sums.node_feats.dtype).unsqueeze(1)
        self.readouts = [total.mul_(self.factor) for total in pooled]
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
        pairs = zip(by_depth[1:], self.weights[1:], strict=True)
        return [(found @ weight).mul_(self.factor) for found, weight in pairs]


class FusedNetwork:
    """A model as fused layers and heads, valid as long as its modules do not change."""

    def __init__(self, model: GraphClassifier, layers: list[FusedLayer]):
        self.layers, self.heads = layers, FusedHeads(model)
        self.edge_mlps = StackedEdgeMLPs.build([layer.layer for layer in layers])

    def layer_inputs(self, sums: BatchSums) -> list[LayerInputs]:
        if self.edge_mlps is None:
            return [layer.layer.inputs(sums) for layer in self.layers]
        edge_parts = self.edge_mlps.forward(sums)
        sums_of_layers = [layer.layer.neighbor_sum(sums) for layer in self.layers]
        return list(map(LayerInputs, sums_of_layers, edge_parts))

    def train_step(self, sums: BatchSums, loss_fn: LossFn) -> tuple[Tensor, Tensor]:
        """Loss and logits of a batch in training mode; the gradients are added to those of the weights."""
        inputs = self.layer_inputs(sums)
        parts = {layer: one.edge_part for layer, one in enumerate(inputs) if one.edge_part is not None}
        learned = {layer: part for layer, part in parts.items() if self.edge_mlps or part.requires_grad}
        edge_grads: list[Tensor] = []
        with torch.no_grad():
            depths = [sums.node_feats]
            for layer, given in zip(self.layers, inputs, strict=True):
                depths.append(layer.forward(depths[-1], given))
            pool = sums.over_graphs
            logits = self.heads.forward(sums, [pool.apply(h) for h in depths])
            loss, grad_logits = loss_fn(logits)
            grad_pooled = self.heads.backward(grad_logits)
            grad: Tensor | None = None  # of the nodes, from the layer above
            for depth, layer in reversed(list(enumerate(self.layers))):
                grad_nodes = pool.apply_transpose(grad_pooled[depth])
                grad_nodes = grad_nodes if grad is None else grad.add_(grad_nodes)
                grad, grad_edges = layer.backward(grad_nodes, depth > 0, depth in learned)
                if grad_edges is not None:
                    edge_grads.insert(0, grad_edges)
        if self.edge_mlps is not None:
            self.edge_mlps.backward(edge_grads)
        elif learned:
            torch.autograd.backward(list(learned.values()), edge_grads)
        return loss, logits
