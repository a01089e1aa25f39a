"""A training step of GIN and the EGIN family as one function, where a model allows it.

On batches of small graphs most of a step is not arithmetic but the bookkeeping of many small operations. `fused_pass` does
the same arithmetic as the layers with a third of the operations. With the MLP that ends a layer and the normalisation
after it, a layer is a sum over neighbours and then blocks of linear map, batch normalisation and ReLU.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import torch
from dgl.nn import AvgPooling, SumPooling
from torch import Tensor, nn

from egin_dgl.data.loader import Batch
from egin_dgl.layers.mlp import MLP, BatchNorm
from egin_dgl.layers.sum_layer import SumLayer
from egin_dgl.models.distinct import rows_by_color
from egin_dgl.models.fused_pass import Fused, Layer, Network, Scores
from egin_dgl.models.norm_block import NormBlock, Running

Found = TypeVar("Found")
LossOf = Callable[[Tensor], tuple[Tensor, Tensor]]  # from class scores to a number, and its gradient by them
# Loss and class scores of a batch, the gradients in place; None where only autograd can do that.
Step = Callable[[Batch, LossOf], tuple[Tensor, Tensor] | None]


class Classifier(Protocol):
    """What is read of a `GraphClassifier`, beside its layers."""

    norms: nn.ModuleList
    readout: nn.Module
    scores: nn.ModuleList
    dropout: nn.Dropout
    scale: float


def fused_scores(model: Classifier, layers: Sequence[SumLayer], batch: Batch) -> Tensor | None:
    """Class scores of a model in training; None where it is not made of such blocks, as with other normalisations."""
    if not torch.is_grad_enabled() or len(batch.node_feats) < 2:
        return None
    network = network_of(model, layers, training=True)
    if network is None:
        return None
    network.read(batch)
    return Fused.apply(network, *network.parameters())


def fused_stepper(
    model: Classifier, layers: Sequence[SumLayer], weights: Iterable[nn.Parameter]
) -> Step | None:
    """Steps of a model in training with these weights, to whose `.grad` the gradients are added without a graph of
    autograd; None as above, and where a hook waits for a gradient.

    The model is read once: to do it at every step would take about a tenth of the time.
    """
    network = network_of(model, layers, training=True, by_hand=True)
    if network is None or any(map(has_hook, weights)):
        return None

    def step(batch: Batch, loss_of: LossOf) -> tuple[Tensor, Tensor] | None:
        if len(batch.node_feats) < 2:
            return None
        network.read(batch)
        with torch.no_grad():
            scores = network.forward()
            loss, to_scores = loss_of(scores)
            network.add_gradients(to_scores)
        return loss, scores

    return step


def has_hook(weight: Tensor) -> bool:
    return bool(weight._backward_hooks or getattr(weight, "_post_accumulate_grad_hooks", None))


@torch.no_grad()
def measured_scores(model: Classifier, layers: Sequence[SumLayer], batch: Batch, rows: int) -> Tensor | None:
    """Class scores of a model in evaluation, whose normalisations take on the statistics of the first `rows` nodes of the
    batch as they are reached; None as above, and where there is no such row."""
    network = network_of(model, layers, training=False, by_hand=True) if rows else None
    if network is None:
        return None
    network.read(batch)
    sparse = all(layer.sums.bags is not None for layer in network.layers)
    fewer = rows_by_color(batch, len(layers), rows) if sparse else None
    return network.measured(rows) if fewer is None else network.measured_on(fewer, batch.members)


def network_of(
    model: Classifier, layers: Sequence[SumLayer], training: bool, by_hand: bool = False
) -> Network | None:
    """The model as it is now; None where it is not made of such blocks, all of them `training` or none.

    by_hand: no gradient will be asked of autograd that can do without.
    """
    if type(model.readout) not in (SumPooling, AvgPooling) or not 0 <= model.dropout.p < 1:
        return None
    maps = [score for score in model.scores if type(score) is nn.Linear]
    stacks = all_or_none(
        blocks_of(conv.ending(), norm, training) for conv, norm in zip(layers, model.norms, strict=True)
    )
    if stacks is None or len(maps) < len(model.scores):
        return None
    parts = [Layer(*each) for each in zip(layers, stacks, strict=True)]
    scores = Scores(maps, model.dropout.p if model.dropout.training else 0.0)
    return Network(parts, scores, type(layers[0]).all_messages(layers, by_hand), partial(factor, model))


def factor(model: Classifier, batch: Batch) -> Tensor | float:
    """What the sums over the nodes of each graph are multiplied by: 1 / size for a mean, else the model's s."""
    if isinstance(model.readout, AvgPooling):
        return 1 / batch.sizes.clamp(min=1).to(batch.node_feats.dtype).unsqueeze(1)
    return model.scale


def blocks_of(mlp: nn.Module, last_norm: nn.Module, training: bool) -> list[NormBlock] | None:
    """The MLP of a layer and the normalisation after it as blocks; None where they are anything else."""
    if type(mlp) is not MLP or training and any(step.p for step in mlp if isinstance(step, nn.Dropout)):
        return None
    steps = [step for step in mlp if not isinstance(step, nn.Dropout)]
    linears, norms, relus = steps[::3], [*steps[1::3], last_norm], steps[2::3]
    if len(linears) != len(norms) or any(type(relu) is not nn.ReLU for relu in relus):
        return None
    return all_or_none(block_of(*each, training) for each in zip(linears, norms, strict=True))


def block_of(linear: nn.Module, norm: nn.Module, training: bool) -> NormBlock | None:
    """Both as a block; None where they are not what they seem, in another mode, or a hook waits for their call."""
    if type(linear) is not nn.Linear or type(norm) is not BatchNorm or norm.training != training:
        return None
    if linear._forward_hooks or linear._forward_pre_hooks or norm._forward_hooks or norm._forward_pre_hooks:
        return None
    mean, variance, batches = norm.running_mean, norm.running_var, norm.num_batches_tracked
    if mean is None or variance is None or batches is None or norm.momentum is None:
        return None
    return NormBlock(linear, norm, Running(mean, variance, batches, norm.momentum))


def all_or_none(found: Iterable[Found | None]) -> list[Found] | None:
    """The list, and None where one of them is None."""
    result = []
    for each in found:
        if each is None:
            return None
        result.append(each)
    return result
