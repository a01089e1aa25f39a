"""A training step of GIN and the EGIN family as one function, its gradient written by hand.

On batches of small graphs most of a step is not arithmetic but the bookkeeping of many small operations. This does the
same arithmetic as the layers with a third of the operations. With the layer's MLP and the normalisation after it, a
layer is a sum over neighbours and then blocks of linear map, batch normalisation and ReLU.
"""

import torch
from dgl.nn import AvgPooling, SumPooling
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from egin_dgl.data.loader import Batch
from egin_dgl.layers.mlp import MLP, BatchNorm
from egin_dgl.layers.sum_layer import SumLayer
from egin_dgl.layers.sums import pooled

Gradients = dict[Tensor, Tensor]  # of parameters, and of edge halves


class Block:
    r"""y = ReLU(norm(x W^T + c W_c^T)), where c is the edge half beside x, in the first block of a layer.

    A bias before batch normalisation is subtracted again with the mean: it moves the running mean, and has no gradient.
    """

    def __init__(self, linear: nn.Linear, norm: BatchNorm):
        self.linear, self.norm = linear, norm

    def parameters(self) -> list[Tensor]:
        return [self.linear.weight, self.linear.bias, self.norm.weight, self.norm.bias]

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

    def forward(self, x: Tensor, c: Tensor | None = None, rows: int = 1) -> Tensor:
        weight, norm = self.linear.weight, self.norm
        if rows > 1:  # x has the rows of a node one after another, the weight counts features first
            weight = weight.unflatten(1, (-1, rows)).transpose(1, 2).flatten(1)
        if c is None:
            self.weight = weight
            linear = x @ weight.t()
        else:
            self.weight, weight_c = weight.split([x.shape[1], c.shape[1]], dim=1)
            linear = (c @ weight_c.t()).addmm_(x, self.weight.t())
        out, mean, scale = torch.native_batch_norm(
            linear, norm.weight, norm.bias, norm.running_mean, norm.running_var, True, norm.momentum, norm.eps
        )
        norm.num_batches_tracked.add_(1)
        norm.running_mean.add_(self.linear.bias, alpha=norm.momentum)
        self.saved = x, c, rows, linear, mean, scale, out.relu_()
        return out

    def backward(self, grad: Tensor, grads: Gradients, to_input: bool) -> Tensor | None:
        x, c, rows, linear, mean, scale, out = self.saved
        norm, weight = self.norm, self.linear.weight
        grad = torch.ops.aten.threshold_backward(grad, out, 0)
        grad, grads[norm.weight], grads[norm.bias] = torch.ops.aten.native_batch_norm_backward(
            grad,
            linear,
            norm.weight,
            norm.running_mean,
            norm.running_var,
            mean,
            scale,
            True,
            norm.eps,
            [True] * 3,
        )
        columns = grad.t()
        to_weight = columns @ x
        if rows > 1:
            to_weight = to_weight.unflatten(1, (rows, -1)).transpose(1, 2).flatten(1)
        elif c is not None:
            to_weight = torch.cat([to_weight, columns @ c], dim=1)
            if c.requires_grad:
                grads[c] = grad @ weight[:, x.shape[1] :]
        grads[weight], grads[self.linear.bias] = to_weight, torch.zeros_like(self.linear.bias)
        return grad @ self.weight if to_input else None


class Layer:
    """A sum over neighbours and the blocks after it: (N, D) -> (N, H)."""

    def __init__(self, conv: SumLayer, blocks: list[Block], batch: Batch):
        self.eps, self.blocks = conv.eps, blocks
        self.sums, self.edge_half = conv.messages(batch)

    def forward(self, h: Tensor) -> Tensor:
        summed = self.sums.apply(h)
        rows = len(summed) // len(h)
        x = summed.view(len(h), -1)
        if self.eps.requires_grad:
            x.add_((self.eps * h).repeat(1, rows))
        self.saved = h, rows
        x = self.blocks[0].forward(x, self.edge_half, rows)
        for block in self.blocks[1:]:
            x = block.forward(x)
        return x

    def backward(self, grad: Tensor, grads: Gradients, to_input: bool) -> Tensor | None:
        h, rows = self.saved
        for block in reversed(self.blocks[1:]):
            grad = block.backward(grad, grads, True)
        learnt = self.eps.requires_grad
        grad = self.blocks[0].backward(grad, grads, to_input or learnt)
        if learnt:
            own = grad.view(len(h), rows, -1).sum(1)
            grads[self.eps] = (own * h).sum().view_as(self.eps)
        if not to_input:
            return None
        out = self.sums.transposed(grad.view(len(h) * rows, -1))
        return out.add_(self.eps * own) if learnt else out


class Scores:
    """Readouts of all depths to class scores: Σ_k dropout(W_k readout(h_k) + b_k)."""

    def __init__(self, model: nn.Module, batch: Batch):
        self.maps, self.dropout, self.pool = list(model.scores), model.dropout.p, pooled(batch)
        mean = isinstance(model.readout, AvgPooling)
        self.share = (
            batch.sizes.clamp(min=1).to(batch.node_feats.dtype).reciprocal().unsqueeze(1) if mean else None
        )

    def forward(self, depths: list[Tensor]) -> Tensor:
        self.readouts = [self.pool.apply(h) for h in depths]
        if self.share is not None:
            self.readouts = [readout * self.share for readout in self.readouts]
        scores = [torch.addmm(f.bias, r, f.weight.t()) for f, r in zip(self.maps, self.readouts, strict=True)]
        # Depth by depth, as the layers' dropout draws: the same seed gives the same numbers.
        keep = 1 - self.dropout
        self.masks = (
            [torch.empty_like(score).bernoulli_(keep).div_(keep) for score in scores]
            if self.dropout
            else None
        )
        return (
            torch.stack(scores).mul_(torch.stack(self.masks)).sum(0)
            if self.masks
            else torch.stack(scores).sum(0)
        )

    def backward(self, grad: Tensor, grads: Gradients) -> list[Tensor]:
        """The gradient of each depth's nodes but those of the input."""
        to_depths = []
        for depth, (f, readout) in enumerate(zip(self.maps, self.readouts, strict=True)):
            to_score = grad * self.masks[depth] if self.masks else grad
            grads[f.bias], grads[f.weight] = to_score.sum(0), to_score.t() @ readout
            if depth:
                to_readout = to_score @ f.weight
                to_depths.append(to_readout if self.share is None else to_readout.mul_(self.share))
        return to_depths


class Network:
    """One forward pass of a model and what its gradient needs."""

    def __init__(self, model: nn.Module, stacks: list[list[Block]], batch: Batch):
        self.layers = [Layer(*parts, batch) for parts in zip(model.convs, stacks, strict=True)]
        self.scores, self.node_feats = Scores(model, batch), batch.node_feats

    def inputs(self) -> list[Tensor]:
        """All that has a gradient."""
        found = [layer.eps for layer in self.layers]
        found += [layer.edge_half for layer in self.layers if layer.edge_half is not None]
        found += [p for layer in self.layers for block in layer.blocks for p in block.parameters()]
        return found + [p for f in self.scores.maps for p in (f.weight, f.bias)]

    def forward(self) -> Tensor:
        depths = [self.node_feats]
        for layer in self.layers:
            depths.append(layer.forward(depths[-1]))
        return self.scores.forward(depths)

    def backward(self, grad: Tensor) -> Gradients:
        grads: Gradients = {}
        above = None
        to_depths = self.scores.backward(grad, grads)
        for depth, layer in reversed(list(enumerate(self.layers))):
            to_nodes = self.scores.pool.transposed(to_depths[depth])
            above = to_nodes if above is None else above.add_(to_nodes)
            above = layer.backward(above, grads, to_input=depth > 0)
        return grads


class Fused(torch.autograd.Function):
    """The network as one operation; its inputs are those of `Network.inputs`."""

    @staticmethod
    def forward(ctx, network: Network, *inputs: Tensor) -> Tensor:
        ctx.network, ctx.inputs = network, inputs
        return network.forward()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        grads = ctx.network.backward(grad)
        return None, *(grads.get(tensor) for tensor in ctx.inputs)


def fused_scores(model: nn.Module, batch: Batch) -> Tensor | None:
    """Class scores of a training step; None where the model is not made of such blocks, as with other normalisations."""
    if not (model.training and torch.is_grad_enabled() and len(batch.node_feats) > 1):
        return None
    if type(model.readout) not in (SumPooling, AvgPooling) or not 0 <= model.dropout.p < 1:
        return None
    stacks = [blocks_of(conv.mlp, norm) for conv, norm in zip(model.convs, model.norms, strict=True)]
    if None in stacks:
        return None
    network = Network(model, stacks, batch)
    return Fused.apply(network, *network.inputs())


def blocks_of(mlp: nn.Module, norm: nn.Module) -> list[Block] | None:
    """The MLP of a layer and the normalisation after it as blocks; None where they are anything else."""
    steps = (
        [step for step in mlp if not (type(step) is nn.Dropout and step.p == 0)] if type(mlp) is MLP else []
    )
    steps += [norm, None]
    blocks = [Block(linear, norm) for linear, norm in zip(steps[::3], steps[1::3], strict=False)]
    return blocks if steps and all(block.is_plain() for block in blocks) else None
