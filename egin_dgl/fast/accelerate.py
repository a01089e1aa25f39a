"""Which models are accelerated, and how: layer by layer with autograd, or fused."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from egin_dgl.data.loader import Batch
from egin_dgl.fast.fused_blocks import find_norm_blocks
from egin_dgl.fast.fused_step import FusedLayer, FusedNetwork, FusedTupleLayer
from egin_dgl.fast.layers import FastEGINM, FastEGNNC, FastLayer, find_fast_layer, has_hooks, is_overridden
from egin_dgl.fast.precise_pass import forward_precise
from egin_dgl.fast.sparse_sums import BatchSums, batch_sums
from egin_dgl.layers.readout import MaxPooling, MeanPooling, SumPooling
from egin_dgl.models.classifier import GraphClassifier
from egin_dgl.models.dispatch import LossFn, PreciseForward, ShareMoments, TrainStep, own_moments
from egin_dgl.models.egnn import EGCN


def accelerate(model: nn.Module) -> "AcceleratedModel | None":
    """The accelerated path of a model as it is now; None where only its definition computes it."""
    if not isinstance(model, GraphClassifier) or has_hooks(model) or has_hooks(model.readout):
        return None
    if is_overridden(model, GraphClassifier, "forward", "readouts", "classify", "embed"):
        return None
    is_egcn = isinstance(model, EGCN)
    if is_overridden(model, EGCN if is_egcn else GraphClassifier, "transform_graph"):
        return None
    if type(model.readout) not in (SumPooling, MeanPooling, MaxPooling):
        return None
    found = map(find_fast_layer, model.convs)
    # The channels of a FastEGNNC are those that an EGCN makes of the edge features.
    layers = [layer for layer in found if layer is not None and isinstance(layer, FastEGNNC) == is_egcn]
    # All layers are fast, and none is used twice.
    is_fast = layers and len(layers) == len(model.convs) == len(set(model.convs))
    return AcceleratedModel(model, layers) if is_fast else None


class AcceleratedModel:
    """The same numbers as the model, from the sums of a batch. The model may be trained between calls."""

    def __init__(self, model: GraphClassifier, layers: list[FastLayer]):
        self.model, self.layers = model, layers

    def logits(self, batch: Batch) -> Tensor:
        """What `model.forward` returns."""
        return self.model.classify(self.readouts(batch))

    def embeddings(self, batch: Batch) -> Tensor:
        """What `model.embed` returns."""
        return torch.cat(self.readouts(batch), dim=-1)

    def readouts(self, batch: Batch) -> list[Tensor]:
        """What `model.readouts` returns."""
        sums = batch_sums(batch)
        depths = [sums.node_feats]
        for layer, norm in zip(self.layers, self.model.norms, strict=True):
            depths.append(torch.relu(norm(layer.forward(sums, depths[-1]))))
        return [pool(sums, h, self.model.readout) for h in depths]

    def train_step(self) -> TrainStep | None:
        """A function that computes loss, logits and gradients of a batch without autograd; None where the model is not made
        of fusible blocks, or a hook is registered on a weight."""
        network = self.fuse(training=True)
        if network is None or any(map(has_gradient_hooks, self.model.parameters())):
            return None

        def step(batch: Batch, loss_fn: LossFn) -> tuple[Tensor, Tensor] | None:
            if len(batch.node_feats) < 2:  # one row has no variance
                return None
            return network.train_step(batch_sums(batch), loss_fn)

        return step

    def precise_forward(self) -> PreciseForward | None:
        """A function that computes logits in evaluation mode, after setting every BatchNorm to the statistics of a batch; None
        where the model is not made of fusible blocks."""
        network = self.fuse(training=False)
        if network is None:
            return None

        @torch.no_grad()
        def forward(
            train: Batch, others: Sequence[Batch], share_moments: ShareMoments = own_moments
        ) -> list[Tensor] | None:
            return forward_precise(network, train, others, share_moments) if len(train.node_feats) else None

        return forward

    def fuse(self, training: bool) -> FusedNetwork | None:
        """The model as a fused network; None unless all of its blocks are fusible, and all of them `training` or none."""
        model = self.model
        modules = [module for _, module in model.named_modules(remove_duplicate=False)]
        if any(map(has_hooks, modules)) or len(set(modules)) < len(modules):
            return None
        if type(model.readout) is MaxPooling or not 0 <= model.dropout.p < 1:
            return None
        if any(type(head) is not nn.Linear for head in model.heads):
            return None
        pairs = zip(self.layers, model.norms, strict=True)
        layers = [fuse_layer(layer, norm, training) for layer, norm in pairs]
        return FusedNetwork(model, layers) if all(layer.blocks for layer in layers) else None


def fuse_layer(layer: FastLayer, norm: nn.Module, training: bool) -> FusedLayer:
    kind = FusedTupleLayer if isinstance(layer, FastEGINM) else FusedLayer
    return kind(layer, find_norm_blocks(layer.mlp, norm, training), training)


def has_gradient_hooks(weight: Tensor) -> bool:
    """Whether a hook is registered on the gradient of a weight. torch has no public way to ask."""
    return bool(weight._backward_hooks or getattr(weight, "_post_accumulate_grad_hooks", None))


def pool(sums: BatchSums, h: Tensor, readout: nn.Module) -> Tensor:
    """The readout on a batch: (N, D) -> (B, D)."""
    if isinstance(readout, MaxPooling):
        return torch.embedding_bag(h, sums.members.columns, sums.members.starts, False, 2)[0]
    total = sums.over_graphs(h)
    return total / sums.num_nodes.clamp(min=1).unsqueeze(1) if isinstance(readout, MeanPooling) else total
