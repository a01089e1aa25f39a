r"""The layers of "Exploiting Edge Features for Graph Neural Networks" (Gong & Cheng, CVPR 2019).

Each of P channels of non-negative edge features ê_ij (edge j → i) is a matrix, made doubly stochastic:

.. math:: \tilde E_{ij} = \hat e_{ij} / \sum_k \hat e_{ik}, \quad
          E_{ij} = \sum_k \frac{\tilde E_{ik} \tilde E_{jk}}{\sum_v \tilde E_{vk}}

E connects nodes two steps apart, so it has many more entries than there are edges. It is never formed here: with
c_k = Σ_v Ẽ_vk and B = Ẽ diag(c)^(-1/2), E = B Bᵀ, and E X = B (Bᵀ X) is two sums along the edges.
Rows and columns of E sum to 1 for nodes with an edge in the channel, and are zero for others. Negative features count
as zero. E connects nodes that share a neighbor: without self-loops, adjacent nodes are connected only in triangles.
"""

import torch
from torch import Tensor, nn

from egin_dgl.data.edge_list import Graph
from egin_dgl.layers.aggregate import at_least_float32, edge_softmax, sum_edges, sum_weighted


def doubly_stochastic_root(graph: Graph, e: Tensor) -> Tensor:
    """B of E = B Bᵀ, one value per edge and channel: (E, P) -> (E, P)."""
    src, dst = graph.edges()
    e = at_least_float32(e).clamp(min=0)
    rows = e / divisor(sum_edges(graph, e))[dst]
    columns = sum_edges(graph.reverse(), rows)
    return rows / divisor(columns).sqrt()[src]


def divisor(x: Tensor) -> Tensor:
    """x, or 1 where x is zero or so small that gradients overflow."""
    return torch.where(x > 1e-30, x, torch.ones_like(x))


class EGNNCConv(nn.Module):
    r"""EGNN(C) layer: one convolution per channel of edge features, results concatenated.

    .. math:: X' = \big\Vert_{p=1}^{P} E_{\cdot\cdot p} X W

    The nonlinearity is left to the caller.

    Args:
        in_dim: D, features of a node.
        out_dim: H, features of a node and channel.
        normalized: edge features are results of `doubly_stochastic_root`, computed once for all layers. Default: False.

    Shapes: x (N, D), e (E, P) with e ≥ 0 -> (N, P · H).

    Example:
        >>> import dgl
        >>> EGNNCConv(7, 16)(dgl.rand_graph(3, 6), torch.rand(3, 7), torch.rand(6, 4)).shape
        torch.Size([3, 64])
    """

    def __init__(self, in_dim: int, out_dim: int, normalized: bool = False):
        super().__init__()
        self.linear = nn.Linear(in_dim, out_dim, bias=False)
        nn.init.xavier_uniform_(self.linear.weight)
        self.normalized = normalized

    def forward(self, graph: Graph, x: Tensor, e: Tensor) -> Tensor:
        root = e if self.normalized else doubly_stochastic_root(graph, e)
        return convolve(graph, self.linear(x), root)


class EGNNAConv(nn.Module):
    r"""EGNN(A) layer: as EGNN(C), with attention times edge features as channels.

    .. math:: \hat\alpha_{ijp} = \exp(LeakyReLU(a^T [W x_i \Vert W x_j])) \, \hat e_{ijp}, \quad
              X' = \big\Vert_{p=1}^{P} \alpha_{\cdot\cdot p} X W, \quad \alpha = DS(\hat\alpha)

    The paper passes α to the next layer as edge features; α connects nodes two steps apart, so here every layer starts
    from the edge features of the data.

    Args:
        in_dim: D, features of a node.
        out_dim: H, features of a node and channel.
        negative_slope: of the LeakyReLU. Default: 0.2.

    Shapes: x (N, D), e (E, P) with e ≥ 0 -> (N, P · H).

    Example:
        >>> import dgl
        >>> EGNNAConv(7, 16)(dgl.rand_graph(3, 6), torch.rand(3, 7), torch.rand(6, 4)).shape
        torch.Size([3, 64])
    """

    def __init__(self, in_dim: int, out_dim: int, negative_slope: float = 0.2):
        super().__init__()
        self.linear = nn.Linear(in_dim, out_dim, bias=False)
        self.attend = nn.Linear(out_dim, 2, bias=False)  # the halves of a, for i and for j
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.xavier_uniform_(self.attend.weight)
        self.negative_slope = negative_slope

    def forward(self, graph: Graph, x: Tensor, e: Tensor) -> Tensor:
        src, dst = graph.edges()
        x = self.linear(x)
        target, source = at_least_float32(self.attend(x)).unbind(1)
        scores = nn.functional.leaky_relu(target[dst] + source[src], self.negative_slope)
        # A softmax over the edges into a node scales each row of α̂, which the normalisation of rows cancels.
        attention = edge_softmax(graph, scores.unsqueeze(1))
        return convolve(graph, x, doubly_stochastic_root(graph, attention * at_least_float32(e)))


def convolve(graph: Graph, x: Tensor, root: Tensor) -> Tensor:
    """B_p (B_pᵀ x) for each channel p, concatenated: (N, H), (E, P) -> (N, P · H)."""
    root = root.unsqueeze(2)
    from_row = sum_weighted(graph.reverse(), x.unsqueeze(1), root)
    return sum_weighted(graph, from_row, root).flatten(1)
