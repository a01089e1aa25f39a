"""DGCNN: graph convolutions, sorted nodes, and a 1-D convolution over them."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.edge_list import Graph
from egin_dgl.layers.dgcnn import DGCNNConv, SortPool
from egin_dgl.models.classifier import layer_inputs
from egin_dgl.models.model import GraphModel
from egin_dgl.options import Fraction, NumLayers, Width

MIN_K = 10  # the second convolution has width 5, after halving
KeptNodes = Annotated[int, Field(ge=MIN_K, le=1000)]


class DGCNN(GraphModel):
    """DGCNN: concatenated layers → k sorted nodes → two 1-D convolutions → dense layer → logits.

    The last layer has one channel, by which nodes are sorted; see `DGCNNConv` and `SortPool`.

    Args:
        info: sizes of the data, with the sizes of the training graphs.
        hidden_dim: channels of each layer but the last. Default: 32.
        num_layers: graph convolutions before the last. Default: 3.
        k: nodes kept of each graph; None: the largest k such that a share `reach` of the training graphs has k nodes.
        reach: that share, 0 to 1. Default: 0.6.
        conv_dims: channels of the two 1-D convolutions. Default: (16, 32).
        dense_dim: features of a graph before the logits, the embedding. Default: 128.
        dropout: before the logits. Default: 0.5.

    Example:
        >>> import dgl
        >>> model = DGCNN(DatasetInfo(node_dim=7, edge_dim=4, classes=2), k=10)
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
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
        if k < MIN_K:
            raise ValueError(f"k must be at least {MIN_K}, got {k}")
        widths = [hidden_dim] * num_layers + [1]
        inputs = layer_inputs(info.node_dim, hidden_dim, len(widths))
        self.convs = nn.ModuleList(DGCNNConv(*size) for size in zip(inputs, widths, strict=True))
        self.pool = SortPool(k)
        self.cnn = nn.Sequential(
            nn.Conv1d(sum(widths), conv_dims[0], 1),  # each node separately
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(conv_dims[0], conv_dims[1], 5),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(conv_dims[1] * (k // 2 - 4), dense_dim),
            nn.ReLU(),
        )
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(dense_dim, info.outputs))

    def embed(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        z, depths = node_feats, []
        for conv in self.convs:
            z = conv(graph, z)
            depths.append(z)
        rows = self.pool(graph, torch.cat(depths, dim=1))  # (B, k, channels)
        return self.cnn(rows.transpose(1, 2))

    def forward(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        return self.classifier(self.embed(graph, node_feats, edge_feats))


def choose_k(info: DatasetInfo, reach: float) -> int:
    """The largest k such that at least the share `reach` of the training graphs has k nodes."""
    if not 0 <= reach <= 1:
        raise ValueError(f"reach must be between 0 and 1, got {reach!r}")
    if not info.size_percentiles:
        raise ValueError("the sizes of the training graphs are unknown; give k")
    return max(MIN_K, info.size_percentiles[round(100 * (1 - reach))])
