"""The three layers of "Edged Weisfeiler-Lehman Algorithm" (Yue, Liu, Zhang, Qu, ICANN 2024).

All map node features (N, D) and edge features (E, Q) to node features (N, H). A node j and the edge to it form a
Node-Edge tuple (h_j, e_ij). The node i itself joins with the void edge δ = 0 (EGIN, EGIN-E) or the unit edge
ψ = 1 (EGIN-C), scaled by 1 + ε. The MLPs are given by the caller, who knows their sizes.

`forward` is the definition. `messages` says how the same is summed on a batch of the loader, where sparse products and
sums that its dataset keeps take the place of messages.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from egin_dgl.data.loader import Batch
from egin_dgl.layers.aggregate import at_least_float32, sum_cross, sum_edges, sum_neighbors
from egin_dgl.layers.mlp import SideBySide, can_run_together
from egin_dgl.layers.sum_layer import Messages, SumLayer
from egin_dgl.layers.sums import Sums, around, closed, crossed


class EdgedConv(SumLayer):
    """What the three have in common: an MLP after the sum, and ε, learnt or fixed at zero."""

    eps: Tensor

    def __init__(self, mlp: nn.Module, learn_eps: bool = False):
        super().__init__()
        self.mlp = mlp
        eps = torch.zeros(())
        if learn_eps:
            self.eps = nn.Parameter(eps)
        else:
            self.register_buffer("eps", eps)

    def ending(self) -> nn.Module:
        return self.mlp

    def epsilon(self) -> Tensor:
        return self.eps


class EGINConv(EdgedConv):
    r"""EGIN: the tuple is a concatenation.

    .. math:: h_i' = MLP\{(1+\epsilon)\,(h_i, \delta) + \sum_{j \in N(i)} (h_j, e_{ij})\}, \quad \delta = 0

    Shapes: h (N, D), e (E, Q), MLP D + Q -> H; result (N, H).

    Example:
        >>> conv = EGINConv(MLP(7 + 4, 64, 64), learn_eps=True)
        >>> conv(graph, h, e)  # (N, 7), (E, 4) -> (N, 64)
    """

    def forward(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        neighbor_sum = sum_neighbors(graph, h)
        edge_sum = sum_edges(graph, e)
        # δ is zero in every dimension, so the node itself adds nothing to the edge half.
        return self.mlp(torch.cat([(1 + self.eps) * at_least_float32(h) + neighbor_sum, edge_sum], dim=-1))

    def messages(self, batch: Batch) -> Messages:
        edge_sums = batch.once("edge sums", lambda batch: batch.of_nodes(batch.constants.edge_sums))
        return Messages(closed(batch), edge_sums)


class EGINCConv(EdgedConv):
    r"""EGIN-C: the tuple is an outer product, so every node feature meets every edge feature.

    .. math:: h_i' = MLP\{(1+\epsilon)\,(h_i \otimes \psi) + \sum_{j \in N(i)} h_j \otimes e_{ij}\}, \quad \psi = 1

    Shapes: h (N, D), e (E, Q), MLP D·Q -> H; result (N, H).
    """

    def forward(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        cross_sum = sum_cross(graph, h, e)
        # h ⊗ ψ repeats each feature once per edge dimension.
        own = at_least_float32(h).repeat_interleave(e.shape[-1], dim=-1)
        return self.mlp((1 + self.eps) * own + cross_sum)

    def messages(self, batch: Batch) -> Messages:
        return Messages(crossed(batch))


class EGINEConv(EdgedConv):
    r"""EGIN-E: the tuple is a concatenation with an embedding of the edge, learnt anew at every layer.

    .. math:: h_i' = MLP_1\{(1+\epsilon)\,(h_i, MLP_2(\delta)) + \sum_{j \in N(i)} (h_j, MLP_2(e_{ij}))\}

    Shapes: h (N, D), e (E, Q), MLP₂ Q -> R, MLP₁ D + R -> H; result (N, H).
    """

    def __init__(self, mlp: nn.Module, edge_mlp: nn.Module, learn_eps: bool = False):
        super().__init__(mlp, learn_eps)
        self.edge_mlp = edge_mlp

    def forward(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        void = e.new_zeros(1, e.shape[-1])
        neighbor_sum = sum_neighbors(graph, h)
        edge_sum = sum_edges(graph, self.edge_mlp(e))
        own = (1 + self.eps) * at_least_float32(h)
        own_edge = (1 + self.eps) * at_least_float32(self.edge_mlp(void))
        return self.mlp(torch.cat([own + neighbor_sum, own_edge + edge_sum], dim=-1))

    def messages(self, batch: Batch) -> Messages:
        sums, vectors = around(batch)
        edge_sum = sums(self.edge_mlp(vectors))
        if self.has_eps():  # the void edge is among the sums once, as the node itself is
            edge_sum = edge_sum + self.eps * self.edge_mlp(vectors.new_zeros(1, vectors.shape[1]))
        return Messages(closed(batch), edge_sum)

    @classmethod
    def all_messages(
        cls, layers: Sequence[SumLayer], by_hand: bool = False
    ) -> Callable[[Batch], list[Messages]]:
        """The edge MLPs of all layers see the same vectors, and run side by side."""
        alike = [layer for layer in layers if type(layer) is EGINEConv and not layer.has_eps()]
        mlps = [layer.edge_mlp for layer in alike]
        if len(alike) < len(layers) or not can_run_together(mlps):
            return super().all_messages(layers, by_hand)
        edge_mlps = SideBySide(mlps)

        def messages(batch: Batch) -> list[Messages]:
            sums, vectors = around(batch)
            if by_hand:
                with torch.no_grad():
                    edge_sum = sums.apply(edge_mlps.forward(vectors))
            else:
                edge_sum = sums(edge_mlps.forward(vectors))
            learnt = SummedEdges(sums, edge_mlps) if by_hand else None
            edge_sums = edge_sum.chunk(len(mlps), dim=1)
            return [Messages(closed(batch), edge_sum, learnt) for edge_sum in edge_sums]

        return messages


class SummedEdges(NamedTuple):
    """Σ MLP₂(e_ij) of all layers of EGIN-E, and its gradient."""

    sums: Sums
    edge_mlps: SideBySide

    def parameters(self) -> list[Tensor]:
        return self.edge_mlps.parameters()

    def gradients(self, to_halves: Sequence[Tensor]) -> list[Tensor]:
        return self.edge_mlps.gradients(self.sums.transposed(torch.cat(list(to_halves), dim=1)))
