"""DGCNN: graph convolutions, nodes put in order, and a convolution along that order."""

from typing import Annotated

import torch
from dgl import DGLGraph
from pydantic import Field
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers.dgcnn import DGCNNConv, SortPool
from egin_dgl.models.classifier import layer_inputs
from egin_dgl.models.model import GraphModel
from egin_dgl.options import Fraction, NumLayers, Width

SMALLEST_K = 10  # below, nothing is left for the second convolution (width 5, after halving)
KeptNodes = Annotated[int, Field(ge=SMALLEST_K, le=1000)]


class DGCNN(GraphModel):
    """Node vectors Z of all layers side by side → k nodes in order → two 1-D convolutions → dense layer → classes.

    The last layer has one channel, by which nodes are put in order.

    Args:
        info: sizes of the data, with the sizes of the training graphs.
        hidden_dim: channels of each layer but the last.
        num_layers: graph convolutions before the last.
        k: nodes kept of each graph; None: so many that the share `reach` of the training graphs has at least k.
        reach: that share, 0 to 1.
        conv_dims: channels of the two 1-D convolutions.
        dense_dim: features of a graph before the classes; what `embed` gives.
        dropout: before the classes.
    """

    title = "DGCNN"
    paper = "Zhang, Cui, Neumann, Chen, AAAI 2018"
    when = "larger graphs, where a few distinct nodes decide"
    uses_edges = False

    def __init__(
        self,
        info: DatasetInfo,
        hidden_dim: Width = 32,
        num_layers: NumLayers = 3,
        k: KeptNodes | None = None,
        reach: Fraction = 0.6,
        conv_dims: tuple[Width, Width] = (16, 32),
        dense_dim: Width = 128,
        dropout: Fraction = 0.5,
    ):
        super().__init__()
        k = choose_k(info, reach) if k is None else k
        if k < SMALLEST_K:
            raise ValueError(f"k must be at least {SMALLEST_K}, got {k}")
        widths = [hidden_dim] * num_layers + [1]
        inputs = layer_inputs(info.node_dim, hidden_dim, len(widths))
        self.convs = nn.ModuleList(DGCNNConv(*size) for size in zip(inputs, widths, strict=True))
        self.pool = SortPool(k)
        self.along = nn.Sequential(
            nn.Conv1d(sum(widths), conv_dims[0], 1),  # each node on its own
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(conv_dims[0], conv_dims[1], 5),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(conv_dims[1] * (k // 2 - 4), dense_dim),
            nn.ReLU(),
        )
        self.score = nn.Sequential(nn.Dropout(dropout), nn.Linear(dense_dim, info.classes))

    def embed(self, graph: DGLGraph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        z, depths = node_feats, []
        for conv in self.convs:
            z = conv(graph, z)
            depths.append(z)
        rows = self.pool(graph, torch.cat(depths, dim=1))  # (B, k, channels)
        return self.along(rows.transpose(1, 2))

    def forward(self, graph: DGLGraph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        return self.score(self.embed(graph, node_feats, edge_feats))


def choose_k(info: DatasetInfo, reach: float) -> int:
    """The largest k such that at least the share `reach` of the training graphs has k nodes."""
    if not 0 <= reach <= 1:
        raise ValueError(f"reach must be between 0 and 1, got {reach!r}")
    if not info.size_percentiles:
        raise ValueError("the sizes of the training graphs are not known; give k")
    return max(SMALLEST_K, info.size_percentiles[round(100 * (1 - reach))])
