"""A training step of GIN and the EGIN family as one function, its gradient written by hand.

On batches of small graphs most of a step is not arithmetic but the bookkeeping of many small operations. This does the
same arithmetic as the layers with a third of the operations. With the MLP that ends a layer and the normalisation
after it, a layer is a sum over neighbours and then blocks of linear map, batch normalisation and ReLU.
"""

import torch
from dgl.nn import AvgPooling, SumPooling
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from egin_dgl.data.loader import Batch
from egin_dgl.layers.mlp import MLP, BatchNorm
from egin_dgl.layers.sum_layer import SumLayer
from egin_dgl.layers.sums import Sums, pooled

# The gradients that autograd itself would call.
relu_backward = torch.ops.aten.threshold_backward.default
norm_backward = torch.ops.aten.native_batch_norm_backward.default


class Block:
    r"""y = ReLU(norm(x W^T)).

    A bias before batch normalisation is subtracted again with the mean: it moves the running mean, and has no gradient.
    """

    def __init__(self, linear: nn.Linear, norm: BatchNorm):
        self.linear, self.norm = linear, norm

    def is_plain(self) -> bool:
        """Whether it is what it seems, in training, and nobody's hook waits for the modules to be called."""
        linear, norm = self.linear, self.norm
        return (
            type(linear) is nn.Linear
            and type(norm) is BatchNorm
            and norm.training
            and norm.momentum is not None
            and not (linear._forward_hooks or linear._forward_pre_hooks)
            and not (norm._forward_hooks or norm._forward_pre_hooks)
        )

    def parameters(self) -> tuple[Tensor, ...]:
        self.weight, self.bias, self.scale, self.shift = (
            *(self.linear.weight, self.linear.bias),
            *(self.norm.weight, self.norm.bias),
        )
        return self.weight, self.bias, self.scale, self.shift

    def forward(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """(N, D) -> (N, H); another order of the weight's columns may be given."""
        norm = self.norm
        self.used = self.weight if weight is None else weight
        linear = x @ self.used.t()
        self.running = norm.running_mean, norm.running_var
        y, mean, inverse = torch.native_batch_norm(
            linear, self.scale, self.shift, *self.running, True, norm.momentum, norm.eps
        )
        self.saved = x, linear, mean, inverse, y.relu_()
        return y

    def backward(self, grad: Tensor, to_input: int | None) -> tuple[Tensor | None, list[Tensor]]:
        """The gradient of the first `to_input` columns of x, and those of the parameters."""
        x, linear, mean, inverse, y = self.saved
        grad, to_scale, to_shift = norm_backward(
            relu_backward(grad, y, 0),
            *(linear, self.scale, *self.running, mean, inverse, True, self.norm.eps, [True, True, True]),
        )
        grads = [grad.t() @ x, torch.zeros_like(self.bias), to_scale, to_shift]
        if to_input is None:
            return None, grads
        return grad @ (self.used if to_input == x.shape[1] else self.used[:, :to_input]), grads


class Layer:
    """A sum over neighbours and the blocks after it: (N, D) -> (N, H)."""

    def __init__(self, conv: SumLayer, blocks: list[Block], messages: tuple[Sums, Tensor | None]):
        self.eps, self.blocks = conv.eps, blocks
        self.sums, self.edge_half = messages

    def parameters(self) -> list[Tensor | None]:
        return [self.eps, self.edge_half, *(p for block in self.blocks for p in block.parameters())]

    def forward(self, h: Tensor) -> Tensor:
        summed = self.sums.apply(h)
        rows = len(summed) // len(h)
        x = summed.view(len(h), -1)
        if self.eps.requires_grad:
            x.add_((self.eps * h).repeat(1, rows))
        self.saved = h, rows, x.shape[1]
        first, *others = self.blocks
        if (
            rows > 1
        ):  # here the rows of a node come one after another; the weight counts the features of a node first
            x = first.forward(x, first.weight.unflatten(1, (-1, rows)).transpose(1, 2).flatten(1))
        else:
            x = first.forward(x if self.edge_half is None else torch.cat([x, self.edge_half], dim=1))
        for block in others:
            x = block.forward(x)
        return x

    def backward(self, grad: Tensor, to_input: bool) -> tuple[Tensor | None, list[Tensor | None]]:
        h, rows, dim = self.saved
        first, *others = self.blocks
        grads: list[Tensor | None] = []
        for block in reversed(others):
            grad, found = block.backward(grad, grad.shape[1])
            grads = found + grads
        learnt, edged = self.eps.requires_grad, self.edge_half is not None and self.edge_half.requires_grad
        whole = first.used.shape[1]
        grad, found = first.backward(grad, whole if edged else dim if to_input or learnt else None)
        if rows > 1:
            found[0] = found[0].unflatten(1, (rows, -1)).transpose(1, 2).flatten(1)
        to_eps = to_edges = out = own = None
        if edged:
            grad, to_edges = grad.split([dim, whole - dim], dim=1)
        if learnt:
            own = grad.reshape(len(h), rows, -1).sum(1)
            to_eps = (own * h).sum().view_as(self.eps)
        if to_input:
            out = self.sums.transposed(grad.reshape(len(h) * rows, -1))
            out = out.add_(self.eps * own) if learnt else out
        return out, [to_eps, to_edges, *found, *grads]


class Scores:
    """From the nodes of all depths to class scores: Σ_k dropout(W_k s readout(h_k) + b_k)."""

    def __init__(self, model: nn.Module, batch: Batch):
        self.maps, self.pool = list(model.scores), pooled(batch)
        self.dropout = model.dropout.p if model.dropout.training else 0.0
        # What a sum over nodes is multiplied by: 1 / size for a mean, else the model's s.
        self.factor: Tensor | float = model.scale
        if isinstance(model.readout, AvgPooling):
            self.factor = 1 / batch.sizes.clamp(min=1).to(batch.node_feats.dtype).unsqueeze(1)

    def parameters(self) -> list[Tensor]:
        self.weights, self.biases = [f.weight for f in self.maps], [f.bias for f in self.maps]
        return self.weights + self.biases

    def forward(self, depths: list[Tensor]) -> Tensor:
        self.readouts = readouts = [self.pool.apply(h).mul_(self.factor) for h in depths]
        scores = torch.stack([r @ weight.t() for r, weight in zip(readouts, self.weights, strict=True)])
        scores.add_(torch.stack(self.biases).unsqueeze(1))
        if not self.dropout:
            self.mask = None
            return scores.sum(0)
        keep = 1 - self.dropout
        self.mask = torch.empty_like(scores).bernoulli_(keep).div_(keep)
        return scores.mul_(self.mask).sum(0)

    def backward(self, grad: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """The gradients of the readouts of all depths but the input, and those of the parameters."""
        to_scores = grad.expand(len(self.maps), *grad.shape) if self.mask is None else self.mask * grad
        by_depth = to_scores.unbind()
        to_weights = [g.t() @ readout for g, readout in zip(by_depth, self.readouts, strict=True)]
        to_readouts = [
            (g @ weight).mul_(self.factor) for g, weight in zip(by_depth[1:], self.weights[1:], strict=True)
        ]
        return to_readouts, [*to_weights, *to_scores.sum(1).unbind()]


class Network:
    """One forward pass of a model and what its gradient needs."""

    def __init__(self, model: nn.Module, stacks: list[list[Block]], batch: Batch):
        messages = type(model.convs[0]).all_messages(model.convs, batch)
        self.layers = [Layer(*parts) for parts in zip(model.convs, stacks, messages, strict=True)]
        self.scores, self.node_feats = Scores(model, batch), batch.node_feats

    def parameters(self) -> list[Tensor | None]:
        """All that has a gradient: parameters, and what the layers put beside the sums of node features."""
        return [p for part in (*self.layers, self.scores) for p in part.parameters()]

    def forward(self) -> Tensor:
        depths = [self.node_feats]
        for layer in self.layers:
            depths.append(layer.forward(depths[-1]))
        self.follow_statistics()
        return self.scores.forward(depths)

    def follow_statistics(self) -> None:
        """What is left of keeping the running statistics: the bias in the mean, and how many batches there were."""
        blocks = [block for layer in self.layers for block in layer.blocks]
        torch._foreach_add_([block.norm.num_batches_tracked for block in blocks], 1)
        for block in blocks:
            block.running[0].add_(block.bias, alpha=block.norm.momentum)

    def backward(self, grad: Tensor) -> list[Tensor | None]:
        to_readouts, grads = self.scores.backward(grad)
        above = None
        for depth, layer in reversed(list(enumerate(self.layers))):
            to_nodes = self.scores.pool.transposed(to_readouts[depth])
            above, found = layer.backward(to_nodes if above is None else above.add_(to_nodes), depth > 0)
            grads = found + grads
        return grads


class Fused(torch.autograd.Function):
    """The network as one operation of its parameters."""

    @staticmethod
    def forward(ctx, network: Network, *parameters: Tensor) -> Tensor:
        ctx.network = network
        return network.forward()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        return None, *ctx.network.backward(grad)


def fused_scores(model: nn.Module, batch: Batch) -> Tensor | None:
    """Class scores in training; None where the model is not made of such blocks, as with other normalisations."""
    if not (model.training and torch.is_grad_enabled() and len(batch.node_feats) > 1):
        return None
    if type(model.readout) not in (SumPooling, AvgPooling) or not 0 <= model.dropout.p < 1:
        return None
    stacks = [blocks_of(conv.mlp, norm) for conv, norm in zip(model.convs, model.norms, strict=True)]
    if None in stacks:
        return None
    network = Network(model, stacks, batch)
    return Fused.apply(network, *network.parameters())


def blocks_of(mlp: nn.Module, norm: nn.Module) -> list[Block] | None:
    """The MLP of a layer and the normalisation after it as blocks; None where they are anything else."""
    if type(mlp) is not MLP or any(step.p for step in mlp if isinstance(step, nn.Dropout)):
        return None
    steps = [step for step in mlp if not isinstance(step, nn.Dropout)]
    blocks = [Block(*pair) for pair in zip(steps[::3], [*steps[1::3], norm], strict=True)]
    return blocks if all(block.is_plain() for block in blocks) else None
