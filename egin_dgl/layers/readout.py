"""Readouts: from the nodes of each graph in a batch to one vector per graph."""

from typing import Literal

from dgl.nn import AvgPooling, MaxPooling, SumPooling
from torch import nn

READOUTS = {"sum": SumPooling, "mean": AvgPooling, "max": MaxPooling}
Readout = Literal["sum", "mean", "max"]


def make_readout(readout: str) -> nn.Module:
    """The pooling of that name: graph, (N, D) -> (B, D) for a batch of B graphs."""
    if readout not in READOUTS:
        raise ValueError(f"readout must be one of {', '.join(READOUTS)}, got {readout!r}")
    return READOUTS[readout]()
