"""How training and inference compute a model: by its definition, or by the accelerated path where there is one.

The definition is ``model(graph, node_feats, edge_feats)``. `fast=False` always takes it.
"""

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor, nn

from egin_dgl.data.loader import Batch
from egin_dgl.models.model import embeddings_of, logits_of, measured_logits_of, stepper_of

# From logits to the loss and its gradient with respect to the logits.
LossFn: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
# Loss and logits of a batch, the gradients added to those of the weights.
TrainStep: TypeAlias = Callable[[Batch, LossFn], tuple[Tensor, Tensor] | None]


def forward_batch(model: nn.Module, batch: Batch, fast: bool = True) -> Tensor:
    """Logits of a batch: (B, classes)."""
    return logits_of(model, batch) if fast else model(batch.graph, batch.node_feats, batch.edge_feats)


def embed_batch(model: nn.Module, batch: Batch, fast: bool = True) -> Tensor:
    """Graph embeddings of a batch: (B, D)."""
    return embeddings_of(model, batch)


def make_train_step(model: nn.Module, fast: bool = True) -> TrainStep:
    """A function that computes loss, logits and gradients of a batch without autograd.

    It returns None for a batch that only autograd can differentiate. Valid as long as the modules, modes and hooks of the
    model do not change.
    """
    return stepper_of(model) if fast else lambda batch, loss_fn: None


def forward_with_precise_bn(
    model: nn.Module, batch: Batch, num_rows: int, fast: bool = True
) -> Tensor | None:
    """Logits in evaluation mode, computed in the same pass that sets every BatchNorm to the statistics of the first
    `num_rows` nodes of the batch; None where one pass cannot do both."""
    return measured_logits_of(model, batch, num_rows) if fast else None
