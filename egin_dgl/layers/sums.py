"""Sums along edges as sparse products, for batches of the loader; `aggregate` has the same sums on DGL's graphs.

`torch.embedding_bag` adds up rows of a table by lists of row numbers, which is a product with a sparse matrix. Its own
gradient is made for large tables of which a batch sees a little; here the gradient is a product with the transpose.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from egin_dgl.data.loader import Bags, Batch


def product(bags: Bags, x: Tensor) -> Tensor:
    """Row r is Σ weight · x[column] over the entries of the row: (C, D) -> (R, D). Not differentiable."""
    return torch.embedding_bag(x, bags.columns, bags.starts, False, 0, False, bags.weights)[0]


class SparseProduct(torch.autograd.Function):
    """A x with the gradient Aᵀ g."""

    @staticmethod
    def forward(ctx, x: Tensor, bags: Bags, transposed: Bags) -> Tensor:
        ctx.transposed = transposed
        return product(bags, x.detach())

    @staticmethod
    def backward(ctx, grad: Tensor):
        return product(ctx.transposed, grad.contiguous()), None, None


class SegmentSum(torch.autograd.Function):
    """Sums over the nodes of each graph; every node has the gradient of its graph."""

    @staticmethod
    def forward(ctx, x: Tensor, batch: Batch) -> Tensor:
        ctx.batch = batch
        return product(batch.members, x.detach())

    @staticmethod
    def backward(ctx, grad: Tensor):
        return grad.index_select(0, ctx.batch.graph_of_node), None


class ClosedSum(torch.autograd.Function):
    """The same sums where nearly all pairs are joined: those over all nodes of the graph, and what differs from them."""

    @staticmethod
    def forward(ctx, x: Tensor, batch: Batch, bags: Bags, transposed: Bags) -> Tensor:
        ctx.batch, ctx.transposed = batch, transposed
        return over_all(batch, bags, x.detach())

    @staticmethod
    def backward(ctx, grad: Tensor):
        return over_all(ctx.batch, ctx.transposed, grad.contiguous()), None, None, None


def over_all(batch: Batch, beyond: Bags, x: Tensor) -> Tensor:
    total = product(batch.members, x).index_select(0, batch.graph_of_node)
    return total.add_(product(beyond, x)) if len(beyond.columns) else total


def sum_closed(batch: Batch, h: Tensor) -> Tensor:
    """h_i + Σ_{j ∈ N(i)} h_j: (N, D) -> (N, D)."""
    beyond = batch.constants.beyond_all
    if beyond is None:
        return SparseProduct.apply(h, *batch.bags(batch.constants.closed))
    return ClosedSum.apply(h, batch, *batch.bags(beyond))


def sum_crossed(batch: Batch, h: Tensor) -> Tensor:
    """h_i ⊗ ψ + Σ_{j ∈ N(i)} h_j ⊗ e_ij with the edge features as rows, not columns: (N, D) -> (N, Q, D)."""
    out = SparseProduct.apply(h, *batch.bags(batch.constants.crossed))
    return out.view(len(h), -1, h.shape[1])


def sum_edge_embeddings(batch: Batch, embed: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """f(δ) + Σ_{j ∈ N(i)} f(e_ij) for a function f of single edge vectors, and f(δ): (N, R), (R,).

    f is called on distinct vectors only: on a table of the dataset where these are few, on those of the batch otherwise.
    """
    constants = batch.constants
    if constants.edge_kinds is not None:
        embedded = embed(constants.edge_table)
        return batch.of_nodes(constants.edge_counts) @ embedded, embedded[-1]
    vectors, offsets = constants.edge_vectors
    void = embed(vectors.new_zeros(1, vectors.shape[1]))
    embedded = embed(batch.chunk.rows(vectors, offsets, batch.number))
    return SparseProduct.apply(embedded, *batch.bags(constants.around)) + void, void[0]
