"""The two layers of "An End-to-End Deep Learning Architecture for Graph Classification" (Zhang et al., AAAI 2018)."""

import torch
from torch import Tensor, nn

from egin_dgl.data.edge_list import Graph
from egin_dgl.layers.aggregate import at_least_float32, sum_neighbors
from egin_dgl.layers.mlp import linear
from egin_dgl.layers.readout import sort_nodes


class DGCNNConv(nn.Module):
    r"""DGCNN layer: row-normalised graph convolution, the mean over a node and its neighbors.

    .. math:: Z' = \tanh(\tilde D^{-1} \tilde A Z W + b), \quad \tilde A = A + I, \quad \tilde D_{ii} = \sum_j \tilde A_{ij}

    The paper has no bias b; the authors' code adds it before the division by the degree, D̃⁻¹ (Ã Z W + b).

    Args:
        in_dim: D, features of a node.
        out_dim: H, features of a node in the result.

    Shapes: z (N, D) -> (N, H).

    Example:
        >>> import dgl
        >>> DGCNNConv(7, 32)(dgl.rand_graph(3, 6), torch.rand(3, 7)).shape
        torch.Size([3, 32])
    """

    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.linear = linear(in_dim, out_dim)

    def forward(self, graph: Graph, z: Tensor) -> Tensor:
        z = at_least_float32(self.linear(z))  # W first: it commutes with the mean, and the result is narrower
        degree = 1 + graph.in_degrees().to(z.dtype).unsqueeze(1)
        return torch.tanh((z + sum_neighbors(graph, z)) / degree)


class SortPool(nn.Module):
    """SortPooling: the k nodes of each graph that are largest in the last channel, in descending order.

    Graphs of fewer nodes are padded with zeros. `dgl.nn.SortPooling` first sorts the channels of each node, so that a
    channel has no fixed meaning; the paper sorts nodes by their last channel and leaves channels in place.

    Args:
        k: nodes kept of each graph.

    Shapes: z (N, C) -> (B, k, C).

    Example:
        >>> import dgl
        >>> SortPool(k=10)(dgl.rand_graph(3, 6), torch.rand(3, 97)).shape
        torch.Size([1, 10, 97])
    """

    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(self, graph: Graph, z: Tensor) -> Tensor:
        return sort_nodes(graph, z, self.k)
