"""The three layers of "Edged Weisfeiler-Lehman Algorithm" (Yue, Liu, Zhang, Qu, ICANN 2024), and EGIN-M.

A node j and the edge to it form a node-edge tuple (h_j, e_ij). The node i itself joins with the void edge δ = 0 (EGIN, EGIN-E,
EGIN-M) or the unit edge ψ = 1 (EGIN-C), scaled by 1 + ε.
"""

import torch
from torch import Tensor, nn

from egin_dgl.data.edge_list import Graph
from egin_dgl.layers.aggregate import at_least_float32, source_feats, sum_cross, sum_edges, sum_neighbors
from egin_dgl.layers.gin import EpsilonConv


class EGINConv(EpsilonConv):
    r"""EGIN layer: the tuple is a concatenation.

    .. math:: h_i' = MLP\{(1+\epsilon)\,(h_i, \delta) + \sum_{j \in N(i)} (h_j, e_{ij})\}, \quad \delta = 0

    Args:
        mlp: D + Q -> H.
        learn_eps: learn ε, which is zero otherwise. Default: False.

    Shapes: h (N, D), e (E, Q) -> (N, H).

    Example:
        >>> import dgl
        >>> conv = EGINConv(nn.Linear(7 + 4, 64), learn_eps=True)
        >>> conv(dgl.rand_graph(3, 6), torch.rand(3, 7), torch.rand(6, 4)).shape
        torch.Size([3, 64])
    """

    def forward(self, graph: Graph, h: Tensor, e: Tensor) -> Tensor:
        neighbor_sum = sum_neighbors(graph, h)
        edge_sum = sum_edges(graph, e)
        # δ is zero, so the node itself adds nothing to the edge part.
        return self.mlp(torch.cat([(1 + self.eps) * at_least_float32(h) + neighbor_sum, edge_sum], dim=-1))


class EGINCConv(EpsilonConv):
    r"""EGIN-C layer: the tuple is an outer product of node and edge features.

    .. math:: h_i' = MLP\{(1+\epsilon)\,(h_i \otimes \psi) + \sum_{j \in N(i)} h_j \otimes e_{ij}\}, \quad \psi = 1

    Args:
        mlp: D · Q -> H.
        learn_eps: learn ε, which is zero otherwise. Default: False.

    Shapes: h (N, D), e (E, Q) -> (N, H).

    Example:
        >>> import dgl
        >>> conv = EGINCConv(nn.Linear(7 * 4, 64))
        >>> conv(dgl.rand_graph(3, 6), torch.rand(3, 7), torch.rand(6, 4)).shape
        torch.Size([3, 64])
    """

    def forward(self, graph: Graph, h: Tensor, e: Tensor) -> Tensor:
        cross_sum = sum_cross(graph, h, e)
        # h ⊗ ψ repeats each feature once per edge dimension.
        h_cross = at_least_float32(h).repeat_interleave(e.shape[-1], dim=-1)
        return self.mlp((1 + self.eps) * h_cross + cross_sum)


class EGINEConv(EpsilonConv):
    r"""EGIN-E layer: the tuple is a concatenation with an embedding of the edge.

    .. math:: h_i' = MLP_1\{(1+\epsilon)\,(h_i, MLP_2(\delta)) + \sum_{j \in N(i)} (h_j, MLP_2(e_{ij}))\}

    Args:
        mlp: MLP₁, D + R -> H.
        edge_mlp: MLP₂, Q -> R.
        learn_eps: learn ε, which is zero otherwise. Default: False.

    Shapes: h (N, D), e (E, Q) -> (N, H).

    Example:
        >>> import dgl
        >>> conv = EGINEConv(nn.Linear(7 + 16, 64), nn.Linear(4, 16))
        >>> conv(dgl.rand_graph(3, 6), torch.rand(3, 7), torch.rand(6, 4)).shape
        torch.Size([3, 64])
    """

    def __init__(self, mlp: nn.Module, edge_mlp: nn.Module, learn_eps: bool = False):
        super().__init__(mlp, learn_eps)
        self.edge_mlp = edge_mlp

    def forward(self, graph: Graph, h: Tensor, e: Tensor) -> Tensor:
        void = e.new_zeros(1, e.shape[-1])
        neighbor_sum = sum_neighbors(graph, h)
        edge_sum = sum_edges(graph, self.edge_mlp(e))
        h_self = (1 + self.eps) * at_least_float32(h)
        e_self = (1 + self.eps) * at_least_float32(self.edge_mlp(void))
        return self.mlp(torch.cat([h_self + neighbor_sum, e_self + edge_sum], dim=-1))


class EGINMConv(EpsilonConv):
    r"""EGIN-M layer: an MLP of each tuple before the sum, which makes the sum injective on multisets of tuples.

    .. math:: h_i' = MLP_1\{(1+\epsilon)\,MLP_2(h_i, \delta) + \sum_{j \in N(i)} MLP_2(h_j, e_{ij})\}

    The paper proves its power for such a function of tuples, and then sums the tuples themselves, which loses the edge that
    leads to each neighbor. MLP₂ needs two linear maps or more: with one, the sum is that of EGIN. It has no batch
    normalisation: (h_i, δ) and (h_j, e_ij) must pass the same function, statistics over edges would weight nodes by their
    degree, and equal tuples may be computed once only if no row depends on the others.

    Args:
        mlp: MLP₁, M -> H.
        tuple_mlp: MLP₂, D + Q -> M.
        learn_eps: learn ε, which is zero otherwise. Default: False.

    Shapes: h (N, D), e (E, Q) -> (N, H).

    Example:
        >>> import dgl
        >>> from egin_dgl.layers import MLP
        >>> conv = EGINMConv(nn.Linear(32, 64), MLP(7 + 4, 32, 32, norm="none"))
        >>> conv(dgl.rand_graph(3, 6), torch.rand(3, 7), torch.rand(6, 4)).shape
        torch.Size([3, 64])
    """

    def __init__(self, mlp: nn.Module, tuple_mlp: nn.Module, learn_eps: bool = False):
        super().__init__(mlp, learn_eps)
        self.tuple_mlp = tuple_mlp

    def forward(self, graph: Graph, h: Tensor, e: Tensor) -> Tensor:
        void = e.new_zeros(len(h), e.shape[-1])
        own = self.tuple_mlp(torch.cat([at_least_float32(h), void], dim=-1))
        messages = self.tuple_mlp(torch.cat([source_feats(graph, h), e], dim=-1))
        return self.mlp((1 + self.eps) * at_least_float32(own) + sum_edges(graph, messages))
