"""The layer of "Residual Gated Graph ConvNets" (Bresson & Laurent, 2017), with edge features in the gates."""

import dgl.function as fn
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from egin_dgl.layers.aggregate import at_least_float32, sum_weighted
from egin_dgl.layers.mlp import linear


class GatedGCNConv(nn.Module):
    r"""Edges gate the messages that cross them, and are updated themselves.

    .. math::
        e'_{ij} = A h_i + B h_j + C e_{ij}, \quad h'_i = U h_i + \sum_{j \in N(i)} \sigma(e'_{ij}) \odot V h_j

    Edge states are those of "Benchmarking Graph Neural Networks" (Dwivedi et al., 2023), as in the layer that DGL has
    from version 2.0 on. Those two also divide the sum by Σ_j σ(e'_ij); here, as in 2017, it is left whole, for divided
    it is a mean, and a node whose neighbours are all alike would see nothing of its edges. Normalisation, nonlinearity
    and residuals are left to the caller.

    Shapes: h (N, D), e (E, Q), A, B, U, V D × H, C Q × H; results (N, H) and (E, H).
    """

    def __init__(self, in_dim: int, edge_dim: int, out_dim: int):
        super().__init__()
        self.A, self.B, self.U, self.V = (linear(in_dim, out_dim) for _ in range(4))
        self.C = linear(edge_dim, out_dim)

    def forward(self, graph: DGLGraph, h: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        to_node, to_neighbor, own, message = (
            at_least_float32(f(h)) for f in (self.A, self.B, self.U, self.V)
        )
        with graph.local_scope(), torch.autocast(h.device.type, enabled=False):
            graph.ndata["i"], graph.ndata["j"] = to_node, to_neighbor
            graph.apply_edges(fn.u_add_v("j", "i", "ij"))
            ends = graph.edata["ij"]
        e = ends + at_least_float32(self.C(e))
        return own + sum_weighted(graph, message, torch.sigmoid(e)), e
