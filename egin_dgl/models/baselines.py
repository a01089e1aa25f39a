"""Baselines: the majority class, and features without the graph."""

import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.edge_list import Graph
from egin_dgl.layers import MLP
from egin_dgl.layers.readout import SumPooling, pool_edges
from egin_dgl.models.model import GraphModel
from egin_dgl.options import Fraction, NumLayers, Width


class Majority(GraphModel):
    """Majority class: the same logits for every graph, one learned bias per class.

    Args:
        info: sizes of the data.

    Example:
        >>> import dgl
        >>> model = Majority(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "Majority"
    paper = "baseline"
    when = "never; below it a model has learnt nothing"
    uses_edges = False
    uses_structure = False

    def __init__(self, info: DatasetInfo):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(info.outputs))

    def forward(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        return self.bias.expand(graph.batch_size, -1)

    embed = forward


class MLPBag(GraphModel):
    r"""An MLP on the sums of node and of edge features, without the structure of the graph.

    .. math:: logits = MLP(\sum_i x_i \,\Vert\, \sum_{ij} e_{ij})

    Args:
        info: sizes of the data.
        hidden_dim: features between the linear maps. Default: 64.
        num_layers: linear maps. Default: 3.
        dropout: between them. Default: 0.5.

    Example:
        >>> import dgl
        >>> model = MLPBag(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "MLP on bags"
    paper = "baseline"
    when = "to see whether the task needs the graph at all"
    uses_structure = False

    def __init__(
        self, info: DatasetInfo, hidden_dim: Width = 64, num_layers: NumLayers = 3, dropout: Fraction = 0.5
    ):
        super().__init__()
        self.sum_nodes = SumPooling()
        self.mlp = MLP(
            info.node_dim + info.edge_dim, hidden_dim, info.outputs, depth=num_layers, dropout=dropout
        )

    def embed(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        return torch.cat([self.sum_nodes(graph, node_feats), pool_edges(graph, edge_feats)], dim=1)

    def forward(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        return self.mlp(self.embed(graph, node_feats, edge_feats))
