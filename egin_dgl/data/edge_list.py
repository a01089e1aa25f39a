"""EdgeList: a batch of graphs as plain tensors, in place of a `DGLGraph` where DGL is absent or cannot use the device."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import torch
from torch import Tensor

if TYPE_CHECKING:
    from dgl import DGLGraph

Graph: TypeAlias = "DGLGraph | EdgeList"  # what layers and models take


@dataclass(frozen=True, eq=False)
class EdgeList:
    """B graphs with N nodes and E directed edges src → dst, on any device of torch.

    It has the methods of a `DGLGraph` that the models of this package call. Sums along its edges: `layers/aggregate.py`.

    >>> graph = EdgeList(torch.tensor([0, 1]), torch.tensor([1, 2]), nodes=3)
    >>> graph.num_nodes(), graph.num_edges(), graph.batch_size, graph.in_degrees().tolist()
    (3, 2, 1, [0, 1, 1])
    """

    src: Tensor  # (E,) int64
    dst: Tensor  # (E,) int64
    nodes: int  # N
    graph_nodes: Tensor | None = None  # (B,) nodes of each graph; None: one graph
    graph_edges: Tensor | None = None  # (B,) edges of each graph; None: one graph
    looped_nodes: int | None = (
        None  # nodes with a self-loop; None: to be counted, for which a GPU must be waited for
    )

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"an EdgeList has no {name!r}: a model that needs a DGLGraph runs where DGL can use the device; see docs/gpu.md"
        )

    @property
    def device(self) -> torch.device:
        return self.src.device

    @property
    def batch_size(self) -> int:
        return 1 if self.graph_nodes is None else len(self.graph_nodes)

    def edges(self) -> tuple[Tensor, Tensor]:
        return self.src, self.dst

    def num_nodes(self) -> int:
        return self.nodes

    def num_edges(self) -> int:
        return len(self.src)

    def batch_num_nodes(self) -> Tensor:
        """(B,)."""
        return self.src.new_full((1,), self.nodes) if self.graph_nodes is None else self.graph_nodes

    def batch_num_edges(self) -> Tensor:
        """(B,)."""
        return self.src.new_full((1,), len(self.src)) if self.graph_edges is None else self.graph_edges

    def reverse(self) -> "EdgeList":
        """The same graphs with every edge turned around."""
        return replace(self, src=self.dst, dst=self.src)

    def in_degrees(self) -> Tensor:
        """(N,) edges that end in each node."""
        return self._in_degrees

    @cached_property
    def _in_degrees(self) -> Tensor:
        return self.dst.new_zeros(self.nodes).index_add(0, self.dst, torch.ones_like(self.dst))

    @cached_property
    def graph_of_node(self) -> Tensor:
        """(N,) in 0..B-1."""
        return _repeat_numbers(self.batch_num_nodes(), self.nodes)

    @cached_property
    def graph_of_edge(self) -> Tensor:
        """(E,) in 0..B-1."""
        return _repeat_numbers(self.batch_num_edges(), len(self.src))

    @cached_property
    def in_edges(self) -> tuple[Tensor, Tensor]:
        """Edges ordered by the node where they end, (E,), and where those of each node begin, (N,)."""
        degrees = self.in_degrees()
        return torch.argsort(self.dst, stable=True), degrees.cumsum(0) - degrees


def _repeat_numbers(counts: Tensor, total: int) -> Tensor:
    numbers = torch.arange(len(counts), device=counts.device)
    return numbers.repeat_interleave(counts, output_size=total)
