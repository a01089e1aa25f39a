"""Layers of `dgl.nn` with the call signature of all layers of this package."""

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from egin_dgl.layers.aggregate import at_least_float32


class DGLLayer(nn.Module):
    """``conv(graph, h, e)`` of `dgl.nn`, with heads concatenated: (N, D), (E, Q) -> (N, heads · H).

    Runs in full precision also under autocast: DGL's CPU kernels do not support half precision.
    """

    def __init__(self, conv: nn.Module):
        super().__init__()
        self.conv = conv

    def forward(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        with torch.autocast(h.device.type, enabled=False):
            return self.call(graph, at_least_float32(h), at_least_float32(e)).flatten(1)

    def call(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        """Call the layer of DGL."""
        return self.conv(graph, h, e)


class EdgeFreeLayer(DGLLayer):
    """``conv(graph, h)`` of `dgl.nn`, without edge features."""

    def call(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        return self.conv(graph, h)
