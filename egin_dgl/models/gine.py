"""GINE: GIN with edge features added to those of the neighbors."""

from dgl import DGLGraph
from dgl.nn import GINEConv
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers.dgl_layer import DGLLayer
from egin_dgl.layers.mlp import linear
from egin_dgl.models.gin_family import GINFamily


class GINE(GINFamily):
    r"""GINE of "Strategies for Pre-training Graph Neural Networks", with DGL's `GINEConv`.

    .. math:: h_i' = MLP\{(1+\epsilon)\,h_i + \sum_{j \in N(i)} ReLU(h_j + W e_{ij} + b)\}

    Example:
        >>> import dgl, torch
        >>> model = GINE(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "GINE"
    paper = "Hu et al., ICLR 2020"
    when = "the usual edge-aware baseline on molecules"

    def __init__(self, info: DatasetInfo, learn_eps: bool = False, **options):
        def make_layer(mlp, dim):
            return GINELayer(GINEConv(mlp(dim), learn_eps=learn_eps), linear(info.edge_dim, dim))

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)


class GINELayer(DGLLayer):
    """DGL's `GINEConv` after a linear map of edge features to the size of node features."""

    def __init__(self, conv: nn.Module, embedding: nn.Module):
        super().__init__(conv)
        self.embedding = embedding

    def call(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        return self.conv(graph, h, self.embedding(e))
