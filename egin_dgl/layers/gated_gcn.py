"""The layer of "Residual Gated Graph ConvNets" (Bresson & Laurent, 2017), with edge features in the gates."""

import torch
from torch import Tensor, nn

from egin_dgl.data.edge_list import Graph
from egin_dgl.layers.aggregate import add_ends, at_least_float32, sum_weighted
from egin_dgl.layers.mlp import linear


class GatedGCNConv(nn.Module):
    r"""GatedGCN layer: edges gate the messages along them, and are updated.

    .. math::
        e'_{ij} = A h_i + B h_j + C e_{ij}, \quad h'_i = U h_i + \sum_{j \in N(i)} \sigma(e'_{ij}) \odot V h_j

    Edge states are those of "Benchmarking Graph Neural Networks" (Dwivedi et al., 2023), which, as DGL 2.0, also divides the sum
    by Σ_j σ(e'_ij). Here, as in 2017, it is not divided: a node whose neighbors are all equal would not depend on its edges.
    Normalisation, nonlinearity and residuals are left to the caller.

    Args:
        in_dim: D, features of a node.
        edge_dim: Q, features of an edge.
        out_dim: H, features of a node and of an edge in the result.

    Shapes: h (N, D), e (E, Q) -> (N, H) and (E, H).

    Example:
        >>> import dgl
        >>> h, e = GatedGCNConv(7, 4, 64)(dgl.rand_graph(3, 6), torch.rand(3, 7), torch.rand(6, 4))
        >>> h.shape, e.shape
        (torch.Size([3, 64]), torch.Size([6, 64]))
    """

    def __init__(self, in_dim: int, edge_dim: int, out_dim: int):
        super().__init__()
        self.A, self.B, self.U, self.V = (linear(in_dim, out_dim) for _ in range(4))
        self.C = linear(edge_dim, out_dim)

    def forward(self, graph: Graph, h: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        target, source, h_self, message = (at_least_float32(f(h)) for f in (self.A, self.B, self.U, self.V))
        e = add_ends(graph, source, target) + at_least_float32(self.C(e))
        return h_self + sum_weighted(graph, message, torch.sigmoid(e)), e
