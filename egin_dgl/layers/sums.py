"""Sums along edges as sparse products, for batches of the loader; `aggregate` has the same sums on DGL's graphs.

`torch.embedding_bag` adds up rows of a table by lists of row numbers, which is a product with a sparse matrix. Its own
gradient is made for large tables of which a batch sees a little; here the gradient is a product with the transpose.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from egin_dgl.data.loader import CSR, Batch

WIDE = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
SOME = torch.ones(64)


def product(bags: CSR, x: Tensor) -> Tensor:
    """Row r is Σ weight · x[column] over the entries of the row: (C, D) -> (R, D). Not differentiable."""
    y = torch.embedding_bag(x, bags.columns, bags.starts, False, 0, False, bags.weights)[0]
    if not WIDE:
        clear_registers()
    return y


def clear_registers() -> None:
    """Let code for SSE run at its own speed again.

    The kernels behind `embedding_bag` leave the upper halves of the AVX registers in use, whatever torch is told to compute
    with. Code that knows only the lower halves, as all that comes next under reproducible=any, is then several times
    slower. Rounding some numbers to half precision is the smallest operation of torch that ends in clearing them.
    """
    SOME.half()


class Sums(NamedTuple):
    """A linear map of the rows of a tensor, S, and its transpose, Sᵀ; both are plain functions without gradients."""

    apply: Callable[[Tensor], Tensor]
    transposed: Callable[[Tensor], Tensor]
    bags: CSR | None = None  # S, where it is one sparse matrix

    def __call__(self, x: Tensor) -> Tensor:
        """S x, differentiable."""
        return Summed.apply(x, self)


class Summed(torch.autograd.Function):
    """S x with the gradient Sᵀ g."""

    @staticmethod
    def forward(ctx, x: Tensor, sums: Sums) -> Tensor:
        ctx.sums = sums
        return sums.apply(x.detach())

    @staticmethod
    def backward(ctx, grad: Tensor):
        return ctx.sums.transposed(grad.contiguous()), None


def closed(batch: Batch) -> Sums:
    """h_i + Σ_{j ∈ N(i)} h_j: (N, D) -> (N, D).

    Where nearly all pairs are joined, the sum over all nodes of the graph and what differs from it.
    """
    return batch.once("closed", _closed)


def _closed(batch: Batch) -> Sums:
    beyond = batch.constants.beyond_all
    if beyond is None:
        return sparse(batch.bags(batch.constants.closed))

    def over_all(bags: CSR, x: Tensor) -> Tensor:
        total = product(batch.members, x).index_select(0, batch.graph_of_node)
        return total.add_(product(bags, x)) if len(bags.columns) else total

    bags, transposed = batch.bags(beyond)
    return Sums(lambda x: over_all(bags, x), lambda grad: over_all(transposed, grad))


def crossed(batch: Batch) -> Sums:
    """h_i ⊗ ψ + Σ_{j ∈ N(i)} h_j ⊗ e_ij, a row for each edge feature: (N, D) -> (N · Q, D)."""
    return batch.once("crossed", lambda batch: sparse(batch.bags(batch.constants.crossed)))


def pooled(batch: Batch) -> Sums:
    """Σ_i h_i over the nodes of each graph: (N, D) -> (B, D)."""
    return Sums(lambda x: product(batch.members, x), lambda grad: grad.index_select(0, batch.graph_of_node))


def sparse(pair: tuple[CSR, CSR]) -> Sums:
    """The map of a sparse matrix."""
    bags, transposed = pair
    return Sums(lambda x: product(bags, x), lambda grad: product(transposed, grad), bags)


def around(batch: Batch) -> tuple[Sums, Tensor]:
    """Σ over the edges of a node, and the node's own void edge: (V, R) -> (N, R); and the V edge vectors, (V, Q).

    They are the distinct ones only: those of the dataset where these are few, those of each graph otherwise. The void
    edge is the last of the dataset's.
    """
    constants = batch.constants
    if constants.edge_kinds is not None:
        counts = batch.of_nodes(constants.edge_counts)
        return Sums(lambda x: counts @ x, lambda grad: counts.t() @ grad), constants.edge_table
    vectors, offsets = constants.edge_vectors
    return sparse(batch.bags(constants.around)), batch.chunk.rows(vectors, offsets, batch.number)
