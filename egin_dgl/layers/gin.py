"""The layers of GIN and GINE, and the base of layers that sum over neighbors and end in an MLP."""

import torch
from torch import Tensor, nn

from egin_dgl.data.edge_list import Graph
from egin_dgl.layers.aggregate import at_least_float32, sum_edges, sum_neighbors


class EpsilonConv(nn.Module):
    """Base of these layers: an MLP after the sum, and ε, learned or fixed at zero."""

    eps: Tensor

    def __init__(self, mlp: nn.Module, learn_eps: bool = False):
        super().__init__()
        self.mlp = mlp
        eps = torch.zeros(())
        if learn_eps:
            self.eps = nn.Parameter(eps)
        else:
            self.register_buffer("eps", eps)


class GINConv(EpsilonConv):
    r"""GIN layer of "How Powerful are Graph Neural Networks?" (Xu et al., ICLR 2019).

    .. math:: h_i' = MLP\{(1+\epsilon)\,h_i + \sum_{j \in N(i)} h_j\}

    Args:
        mlp: D -> H.
        learn_eps: learn ε, which is zero otherwise. Default: False.

    Shapes: h (N, D) -> (N, H); edge features are not used.

    Example:
        >>> import dgl
        >>> GINConv(nn.Linear(7, 64))(dgl.rand_graph(3, 6), torch.rand(3, 7)).shape
        torch.Size([3, 64])
    """

    def forward(self, graph: Graph, h: Tensor, e: Tensor | None = None) -> Tensor:
        return self.mlp((1 + self.eps) * at_least_float32(h) + sum_neighbors(graph, h))


class GINEConv(EpsilonConv):
    r"""GINE layer of "Strategies for Pre-training Graph Neural Networks" (Hu et al., ICLR 2020).

    .. math:: h_i' = MLP\{(1+\epsilon)\,h_i + \sum_{j \in N(i)} ReLU(h_j + W e_{ij} + b)\}

    Args:
        mlp: D -> H.
        edge_linear: W and b, Q -> D.
        learn_eps: learn ε, which is zero otherwise. Default: False.

    Shapes: h (N, D), e (E, Q) -> (N, H).

    Example:
        >>> import dgl
        >>> conv = GINEConv(nn.Linear(7, 64), nn.Linear(4, 7))
        >>> conv(dgl.rand_graph(3, 6), torch.rand(3, 7), torch.rand(6, 4)).shape
        torch.Size([3, 64])
    """

    def __init__(self, mlp: nn.Module, edge_linear: nn.Module, learn_eps: bool = False):
        super().__init__(mlp, learn_eps)
        self.edge_linear = edge_linear

    def forward(self, graph: Graph, h: Tensor, e: Tensor) -> Tensor:
        h, (src, _) = at_least_float32(h), graph.edges()
        messages = torch.relu(h.index_select(0, src) + at_least_float32(self.edge_linear(e)))
        return self.mlp((1 + self.eps) * h + sum_edges(graph, messages))
