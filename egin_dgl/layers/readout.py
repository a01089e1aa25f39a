"""From the nodes of each graph in a batch to one vector a graph."""

from typing import Literal

import torch
from dgl.nn import AvgPooling, MaxPooling, SumPooling
from torch import Tensor, nn

from egin_dgl.data.loader import Batch
from egin_dgl.layers.sums import pooled

READOUTS = {"sum": SumPooling, "mean": AvgPooling, "max": MaxPooling}
Readout = Literal["sum", "mean", "max"]


def make_readout(readout: str) -> nn.Module:
    """The pooling of that name: graph, (N, D) -> (B, D) for a batch of B graphs."""
    if readout not in READOUTS:
        raise ValueError(f"readout must be one of {', '.join(READOUTS)}, got {readout!r}")
    return READOUTS[readout]()


def pool(batch: Batch, h: Tensor, readout: nn.Module) -> Tensor:
    """The same pooling of a batch of the loader: (N, D) -> (B, D)."""
    if isinstance(readout, MaxPooling):
        members = batch.members
        return torch.embedding_bag(h, members.columns, members.starts, False, 2)[0]
    if not isinstance(readout, (SumPooling, AvgPooling)):
        return readout(batch.graph, h)
    total = pooled(batch)(h)
    return total / batch.sizes.clamp(min=1).unsqueeze(1) if isinstance(readout, AvgPooling) else total
