"""The layers of GAT and of GAT with edge features; every node must have an incoming edge, such as a self-loop."""

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from egin_dgl.data.edge_list import Graph
from egin_dgl.layers.aggregate import add_ends, at_least_float32, edge_softmax, sum_edges, sum_weighted


class AttentionConv(nn.Module):
    """Base of both layers: attention of each head to the ends of an edge."""

    def __init__(self, in_dim: int, out_dim: int, heads: int, negative_slope: float):
        super().__init__()
        self.negative_slope = negative_slope
        self.linear = nn.Linear(in_dim, heads * out_dim, bias=False)
        self.attend_source, self.attend_target = (nn.Parameter(torch.empty(1, heads, out_dim)) for _ in "ji")
        self.bias = nn.Parameter(torch.zeros(heads * out_dim))

    def scores(self, graph: Graph, h: Tensor) -> Tensor:
        """a_l^T h_j + a_r^T h_i: (N, K, H) -> (E, K, 1)."""
        return add_ends(graph, weigh(h, self.attend_source), weigh(h, self.attend_target))

    def attention(self, graph: Graph, scores: Tensor) -> Tensor:
        """α: (E, K, 1) -> (E, K, 1)."""
        return edge_softmax(graph, leaky_relu(scores, self.negative_slope))

    def by_head(self, x: Tensor) -> Tensor:
        """(…, K · H) -> (…, K, H)."""
        return at_least_float32(x).unflatten(-1, self.attend_source.shape[1:])


class GATConv(AttentionConv):
    r"""GAT layer of "Graph Attention Networks" (Veličković et al., ICLR 2018).

    .. math:: h_i' = b + \Vert_{heads} \sum_{j \in N(i)} \alpha_{ij} W h_j, \quad
              \alpha_{ij} = softmax_j(LeakyReLU(a_l^T W h_j + a_r^T W h_i))

    Args:
        in_dim: D, features of a node.
        out_dim: H, features of a node and head.
        heads: K.
        negative_slope: of the LeakyReLU. Default: 0.2.

    Shapes: h (N, D) -> (N, K · H); edge features are not used.

    Example:
        >>> import dgl
        >>> GATConv(7, 8, heads=4)(dgl.rand_graph(3, 6), torch.rand(3, 7)).shape
        torch.Size([3, 32])
    """

    def __init__(self, in_dim: int, out_dim: int, heads: int, negative_slope: float = 0.2):
        super().__init__(in_dim, out_dim, heads, negative_slope)
        xavier_normal(self.linear.weight, self.attend_source, self.attend_target)

    def forward(self, graph: Graph, h: Tensor, e: Tensor | None = None) -> Tensor:
        h = self.by_head(self.linear(h))
        total = sum_weighted(graph, h, self.attention(graph, self.scores(graph, h)))
        return (total + self.by_head(self.bias)).flatten(1)


class EdgeGATConv(AttentionConv):
    r"""GAT layer with edge features in attention and messages (Monninger, Schmidt et al., RA-L 2023).

    .. math:: h_i' = b + W_r h_i + \Vert_{heads} \sum_{j \in N(i)} \alpha_{ij} (W h_j + W_e e_{ij}), \quad
              \alpha_{ij} = softmax_j(LeakyReLU(a_l^T W h_j + a_r^T W h_i + a_e^T W_e e_{ij}))

    Args:
        in_dim: D, features of a node.
        edge_dim: Q, features of an edge.
        out_dim: H, features of a node and head.
        heads: K.
        negative_slope: of the LeakyReLU. Default: 0.2.

    Shapes: h (N, D), e (E, Q) -> (N, K · H).

    Example:
        >>> import dgl
        >>> EdgeGATConv(7, 4, 8, heads=4)(dgl.rand_graph(3, 6), torch.rand(3, 7), torch.rand(6, 4)).shape
        torch.Size([3, 32])
    """

    def __init__(self, in_dim: int, edge_dim: int, out_dim: int, heads: int, negative_slope: float = 0.2):
        super().__init__(in_dim, out_dim, heads, negative_slope)
        self.residual = nn.Linear(in_dim, heads * out_dim, bias=False)
        self.edge_linear = nn.Linear(edge_dim, heads * out_dim, bias=False)
        self.attend_edge = nn.Parameter(torch.empty(1, heads, out_dim))
        xavier_normal(self.linear.weight, self.attend_source, self.attend_target)
        xavier_normal(self.edge_linear.weight, self.attend_edge, self.residual.weight)

    def forward(self, graph: Graph, h: Tensor, e: Tensor) -> Tensor:
        residual, h, e = (self.by_head(x) for x in (self.residual(h), self.linear(h), self.edge_linear(e)))
        attention = self.attention(graph, self.scores(graph, h) + weigh(e, self.attend_edge))
        messages = (h.index_select(0, graph.edges()[0]) + e) * attention
        return (sum_edges(graph, messages) + residual + self.by_head(self.bias)).flatten(1)


def weigh(x: Tensor, attend: Tensor) -> Tensor:
    """a^T x of each head: (…, K, H) -> (…, K, 1)."""
    return (x * attend).sum(dim=-1, keepdim=True)


def xavier_normal(*weights: Tensor) -> None:
    for weight in weights:
        nn.init.xavier_normal_(weight, nn.init.calculate_gain("relu"))
