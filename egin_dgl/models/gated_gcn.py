"""GatedGCN: edges have states, which gate the messages."""

import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.edge_list import Graph
from egin_dgl.layers import GatedGCNConv
from egin_dgl.layers.aggregate import at_least_float32
from egin_dgl.layers.mlp import Norm, make_norm
from egin_dgl.models.classifier import GraphClassifier, layer_inputs
from egin_dgl.options import NumLayers, Width


class GatedGCN(GraphClassifier):
    r"""GatedGCN: a stack of `GatedGCNConv`, with residuals of nodes and edges from the second layer on.

    .. math:: h^{(k)} = h^{(k-1)} + ReLU(norm(h')), \quad e^{(k)} = e^{(k-1)} + ReLU(norm(e'))

    Args:
        hidden_dim: features of a node, and of an edge, after each layer. Default: 64.
        num_layers: message-passing layers. Default: 4.
        norm: batch, layer or none, between layers, of nodes and of edges. Default: batch.

    Example:
        >>> import dgl
        >>> model = GatedGCN(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "GatedGCN"
    paper = "Bresson, Laurent, 2017; edges as in Dwivedi et al., 2020"
    when = "many layers, or edges whose meaning depends on what they join"

    def __init__(
        self,
        info: DatasetInfo,
        hidden_dim: Width = 64,
        num_layers: NumLayers = 4,
        norm: Norm = "batch",
        **classifier,
    ):
        sizes = zip(
            layer_inputs(info.node_dim, hidden_dim, num_layers),
            layer_inputs(info.edge_dim, hidden_dim, num_layers),
            strict=True,
        )
        convs = [GatedGCNConv(node_dim, edge_dim, hidden_dim) for node_dim, edge_dim in sizes]
        super().__init__(info, convs, hidden_dim, norm=norm, **classifier)
        # None after the last layer, whose edge states are not used.
        self.edge_norms = nn.ModuleList(make_norm(norm, hidden_dim) for _ in convs[1:])

    def readouts(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> list[Tensor]:
        h, e = node_feats, edge_feats
        pooled = [self.readout(graph, h)]
        for layer, conv in enumerate(self.convs):
            new_h, new_e = conv(graph, h, e)
            new_h = at_least_float32(torch.relu(self.norms[layer](new_h)))
            h = h + new_h if layer else new_h
            pooled.append(self.readout(graph, h))
            if layer < len(self.edge_norms):
                new_e = torch.relu(self.edge_norms[layer](new_e))
                e = e + new_e if layer else new_e
        return pooled
