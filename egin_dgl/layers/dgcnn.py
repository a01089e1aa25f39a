"""The two layers of "An End-to-End Deep Learning Architecture for Graph Classification" (Zhang et al., AAAI 2018)."""

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from egin_dgl.layers.aggregate import at_least_float32, sum_neighbors
from egin_dgl.layers.mlp import linear


class DGCNNConv(nn.Module):
    r"""Row-normalised graph convolution: the mean over a node and its neighbours.

    .. math:: Z' = \tanh(\tilde D^{-1} \tilde A Z W), \quad \tilde A = A + I, \quad \tilde D_{ii} = \sum_j \tilde A_{ij}

    With a bias b, which the paper leaves out and the authors' code has. Here it is added after the division by the
    degree, D̃⁻¹ Ã Z W + b, as if every node had it; there before, D̃⁻¹ (Ã Z W + b), so that it fades with the degree.

    Shapes: z (N, D), W D × H, b H; result (N, H).
    """

    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.linear = linear(in_dim, out_dim)

    def forward(self, graph: DGLGraph, z: Tensor) -> Tensor:
        z = at_least_float32(self.linear(z))  # W first: it commutes with the mean, and the result is narrower
        degree = 1 + graph.in_degrees().to(z.dtype).unsqueeze(1)
        return torch.tanh((z + sum_neighbors(graph, z)) / degree)


class SortPool(nn.Module):
    """The k nodes of each graph that are largest in the last channel, in falling order: (N, C) -> (B, k, C).

    Graphs of fewer nodes are padded with zeros. `dgl.nn.SortPooling` first sorts the channels of each node, so that
    a channel no longer means the same for all nodes; the paper orders nodes by their last channel and leaves channels
    in place. Nodes that tie there come in any order; only nodes that are equal in structure do, but for chance.
    """

    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(self, graph: DGLGraph, z: Tensor) -> Tensor:
        with graph.local_scope():
            graph.ndata["z"] = at_least_float32(z)
            return dgl.topk_nodes(graph, "z", self.k, sortby=-1)[0]
