"""How training and inference compute a model: by its definition, or by the accelerated path where it applies.

The definition is ``model(graph, node_feats, edge_feats)``. The accelerated path is the package `egin_dgl.fast`; it applies to
models whose layers are registered there, unmodified and without hooks, and not under autocast. `fast=False` switches it off.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from egin_dgl.data.loader import Batch

# From logits to the loss and its gradient with respect to the logits.
LossFn: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
# From number, mean and variance of some rows to those of all rows, of which other processes have the rest.
ShareMoments: TypeAlias = Callable[[int, Tensor, Tensor], tuple[int, Tensor, Tensor]]
# Loss and logits of a batch; the gradients are added to those of the weights.
TrainStep: TypeAlias = Callable[[Batch, LossFn], tuple[Tensor, Tensor] | None]

# Logits of other batches in evaluation mode, after BatchNorm statistics are set to those of the first; None if it has no node.
PreciseForward: TypeAlias = Callable[[Batch, Sequence[Batch], ShareMoments], list[Tensor] | None]


def forward_batch(model: nn.Module, batch: Batch, fast: bool = True) -> Tensor:
    """Logits of a batch: (B, classes)."""
    accelerated = find_accelerated(model, batch, fast)
    if accelerated is not None:
        return accelerated.logits(batch)
    return model(batch.graph, batch.node_feats, batch.edge_feats)


def embed_batch(model: nn.Module, batch: Batch, fast: bool = True) -> Tensor:
    """Graph embeddings of a batch: (B, D)."""
    accelerated = find_accelerated(model, batch, fast)
    if accelerated is not None:
        return accelerated.embeddings(batch)
    embed = getattr(model, "embed", None)
    if not callable(embed):
        raise AttributeError(
            f"{type(model).__name__} has no embeddings: define embed(graph, node_feats, edge_feats) as models.GraphModel does"
        )
    return embed(batch.graph, batch.node_feats, batch.edge_feats)


def make_train_step(model: nn.Module, fast: bool = True) -> TrainStep:
    """A function that computes loss, logits and gradients of a batch without autograd.

    It returns None for a batch that only autograd can differentiate. It is valid as long as modules, modes, hooks and a fixed
    ε of the model do not change.
    """
    package = fast_package() if fast else None
    accelerated = package.accelerate(model) if package else None
    fused_step = accelerated.train_step() if accelerated is not None else None

    def step(batch: Batch, loss_fn: LossFn) -> tuple[Tensor, Tensor] | None:
        return None if fused_step is None or is_autocast(batch) else fused_step(batch, loss_fn)

    return step


def own_moments(count: int, mean: Tensor, variance: Tensor) -> tuple[int, Tensor, Tensor]:
    """There are no other rows."""
    return count, mean, variance


def make_precise_forward(model: nn.Module, fast: bool = True) -> PreciseForward | None:
    """A function that sets every BatchNorm to the statistics of a batch in one pass over it, and computes the logits of others.

    None where one pass cannot do this. It is valid as long as modules, modes and hooks of the model do not change.
    """
    package = fast_package() if fast else None
    accelerated = package.accelerate(model) if package else None
    return accelerated.precise_forward() if accelerated is not None else None


def find_accelerated(model: nn.Module, batch: Batch, fast: bool) -> Any:
    """The `egin_dgl.fast.AcceleratedModel` of a model, or None."""
    package = fast_package() if fast and not is_autocast(batch) else None
    return package.accelerate(model) if package else None


@cache
def fast_package() -> ModuleType | None:
    """`egin_dgl.fast`, or None where it is not installed. Imported by name: it is built on this package."""
    try:
        return import_module("egin_dgl.fast")
    except ModuleNotFoundError as error:
        if error.name != "egin_dgl.fast":
            raise
        return None


def is_autocast(batch: Batch) -> bool:
    """Whether mixed precision is on for the device of a batch."""
    device = batch.labels.device.type
    try:
        return torch.is_autocast_enabled(device)
    except TypeError:  # before torch 2.4 each device had its own function
        return torch.is_autocast_cpu_enabled() if device == "cpu" else torch.is_autocast_enabled()
