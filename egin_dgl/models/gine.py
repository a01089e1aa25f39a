"""GINE: GIN with edge features added to the neighbours'."""

from dgl import DGLGraph
from dgl.nn import GINEConv
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers.dgl_layer import DGLLayer
from egin_dgl.layers.mlp import linear
from egin_dgl.models.isomorphism import IsomorphismNetwork


class GINE(IsomorphismNetwork):
    r"""DGL's `GINEConv`; each layer maps edge features to the size of its nodes' first.

    .. math:: h_i' = MLP\{(1+\epsilon)\,h_i + \sum_{j \in N(i)} ReLU(h_j + W e_{ij} + b)\}
    """

    title = "GINE"
    paper = "Hu et al., ICLR 2020"
    when = "the usual edge-aware baseline on molecules"

    def __init__(self, info: DatasetInfo, learn_eps: bool = False, **options):
        def make_layer(mlp, dim):
            return EmbeddedEdges(GINEConv(mlp(dim), learn_eps=learn_eps), linear(info.edge_dim, dim))

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)


class EmbeddedEdges(DGLLayer):
    """A layer of DGL that wants edge features of a size of its own."""

    def __init__(self, conv: nn.Module, embedding: nn.Module):
        super().__init__(conv)
        self.embedding = embedding

    def call(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        return self.conv(graph, h, self.embedding(e))
