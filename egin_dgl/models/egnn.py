"""EGNN(C), called EGCN in the EGIN paper, and EGNN(A): every channel of edge features is a weighted graph."""

import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.edge_list import Graph
from egin_dgl.layers.aggregate import add_self_loops, sum_edges
from egin_dgl.layers.egnn import EGNNAConv, EGNNCConv, doubly_stochastic_root
from egin_dgl.models.classifier import LayerStack
from egin_dgl.options import Width


class ChannelNetwork(LayerStack):
    """One block of features per channel; see `egin_dgl.layers.egnn`.

    The channels differ from those of the paper in three ways:

    - Split attributes. Channels must not be negative: a continuous attribute a becomes the two channels max(a, 0) and
      max(−a, 0); one-hot labels do not change.
    - Self-loops. In every channel where a node has edges it also has a self-loop with their mean weight: E connects nodes that
      share a neighbor, so that without self-loops the two sides of a bipartite graph are never connected. A self-loop
      of the data (read with `self_loops=keep`) keeps its weight.
    - An extra channel of all self-loops: the features of the node itself.

    Args:
        hidden_dim: features of a node and channel after each layer. Default: 64.
    """

    def __init__(self, info: DatasetInfo, hidden_dim: Width = 64, **options):
        self.signed, self.channel_dim = info.edge_attributes, hidden_dim
        super().__init__(info, hidden_dim * (info.edge_dim + info.edge_attributes + 1), **options)

    def transform_graph(self, graph: Graph, edge_feats: Tensor) -> tuple[Graph, Tensor]:
        return make_channels(graph, edge_feats, self.signed)


def make_channels(graph: Graph, edge_feats: Tensor, signed: int) -> tuple[Graph, Tensor]:
    """The graph with self-loops, and its P channels (E + loops, P); the first `signed` edge features may be negative."""
    graph, e = add_self_loops(graph, edge_feats)
    src, dst = graph.edges()
    attributes, labels = e.tensor_split([signed], dim=1)
    is_loop = (src == dst).to(e.dtype).unsqueeze(1)
    channels = torch.cat([attributes.relu(), (-attributes).relu(), labels], dim=1)
    edges = sum_edges(graph, (channels > 0).to(e.dtype)).clamp(min=1)
    loops = sum_edges(graph, is_loop * channels)
    missing = (sum_edges(graph, channels) / edges).masked_fill(loops > 0, 0)
    channels = channels + is_loop * (missing / sum_edges(graph, is_loop))[dst]  # parallel loops share it
    return graph, torch.cat([channels, is_loop], dim=1)


class EGCN(ChannelNetwork):
    """EGNN(C): a convolution per channel; see `EGNNCConv`.

    Example:
        >>> import dgl
        >>> model = EGCN(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "EGCN"
    paper = "after Gong, Cheng, CVPR 2019: EGNN(C); self-loops, their channel and split attributes are ours"
    when = "non-negative edge weights in a few channels, such as strengths or distances"

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        return EGNNCConv(dim, self.channel_dim, normalized=True)

    def transform_graph(self, graph: Graph, edge_feats: Tensor) -> tuple[Graph, Tensor]:
        graph, channels = super().transform_graph(graph, edge_feats)
        return graph, doubly_stochastic_root(graph, channels)  # the same in every layer


class EGATGong(ChannelNetwork):
    """EGNN(A): attention per channel; see `EGNNAConv`.

    Example:
        >>> import dgl
        >>> model = EGATGong(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "EGNN(A)"
    paper = "after Gong, Cheng, CVPR 2019: EGNN(A); wired as EGCN, attention anew in every layer"
    when = "as EGCN, when some neighbours matter more than their edge tells"

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        return EGNNAConv(dim, self.channel_dim)
