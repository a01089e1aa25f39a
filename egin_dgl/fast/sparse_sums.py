"""Sums over neighbors, edges and graphs of a batch as sparse products; `layers/aggregate.py` has them on DGL graphs.

`torch.embedding_bag` sums rows of a table by lists of row numbers, which is a product with a sparse matrix. Its gradient is
made for large tables of which a batch uses few rows; here the gradient is a product with the transpose.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from egin_dgl.data.loader import Batch
from egin_dgl.fast.constants import dataset_constants
from egin_dgl.fast.sparse_matrix import CSR, MatrixPair

USES_AVX = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
ONES = torch.ones(64)


def multiply(csr: CSR, x: Tensor) -> Tensor:
    """Row r is Σ weight · x[column] over the entries of row r: (C, D) -> (R, D). Not differentiable."""
    y = torch.embedding_bag(x, csr.columns, csr.starts, False, 0, False, csr.weights)[0]
    if not USES_AVX:
        # The kernels of `embedding_bag` leave the upper halves of the AVX registers in use, which makes SSE code several
        # times slower (all that follows under reproducible=any). Rounding to half precision clears them.
        ONES.half()
    return y


class LinearMap(NamedTuple):
    """A linear map S of the rows of a tensor and its transpose Sᵀ, as functions without gradients."""

    apply: Callable[[Tensor], Tensor]
    apply_transpose: Callable[[Tensor], Tensor]
    csr: CSR | None = None  # S, where it is one sparse matrix
    dense: Tensor | None = None  # S, where it is a small dense matrix

    @classmethod
    def from_csr(cls, csr: CSR, transpose: CSR) -> "LinearMap":
        return cls(lambda x: multiply(csr, x), lambda grad: multiply(transpose, grad), csr)

    @classmethod
    def select(cls, csr: CSR, transpose: CSR) -> "LinearMap":
        """For a matrix with a single one in each row."""
        return cls(lambda x: x.index_select(0, csr.columns), lambda grad: multiply(transpose, grad), csr)

    @classmethod
    def from_dense(cls, matrix: Tensor) -> "LinearMap":
        return cls(lambda x: matrix @ x, lambda grad: matrix.t() @ grad, dense=matrix)

    def __call__(self, x: Tensor) -> Tensor:
        """S x, differentiable."""
        return LinearMapFunction.apply(x, self)


class LinearMapFunction(torch.autograd.Function):
    """S x with the gradient Sᵀ g."""

    @staticmethod
    def forward(ctx, x: Tensor, linear_map: LinearMap) -> Tensor:
        ctx.linear_map = linear_map
        return linear_map.apply(x.detach())

    @staticmethod
    def backward(ctx, grad: Tensor):
        return ctx.linear_map.apply_transpose(grad.contiguous()), None


class BatchTuples(NamedTuple):
    """The T distinct node-edge tuples of a batch: node and edge vector of each, and sums of tuples around each node."""

    nodes: LinearMap  # (N, D) -> (T, D)
    vectors: LinearMap  # (V, D) -> (T, D)
    void: LinearMap  # (T, D) -> (N, D): (i, δ) of each node
    total: LinearMap  # (T, D) -> (N, D): Σ over (i, δ) and (j, e_ij)
    counts: Tensor  # (N, 1) tuples in that sum
    edge_vectors: Tensor  # (V, Q)


class Sums(Protocol):
    """What layers sum, over the nodes of a batch or over their distinct rows; `BatchSums` explains each."""

    @property
    def self_and_neighbors(self) -> LinearMap: ...

    @property
    def cross_products(self) -> LinearMap: ...

    @property
    def edge_sums(self) -> Tensor: ...

    @property
    def edge_types(self) -> tuple[LinearMap, Tensor]: ...

    @property
    def tuples(self) -> BatchTuples: ...


class BatchSums:
    """The sums of one batch, made on first access. Holds the chunk of the batch, not the batch."""

    def __init__(self, batch: Batch):
        self.chunk, self.number = batch.chunk, batch.number
        self.node_feats, self.num_nodes = batch.node_feats, batch.num_nodes
        dataset = batch.chunk.dataset
        self.constants = dataset_constants(dataset)
        self.graphs = batch.per_graph(batch.chunk.on_host)
        starts = batch.per_graph(batch.chunk.layout(dataset.node_rows).starts).int()
        nodes = torch.arange(len(self.node_feats), dtype=torch.int32, device=starts.device)
        self.members = CSR(starts, nodes, None)  # row b has the nodes of graph b
        self.cache: dict[object, Any] = {}  # of `precise_pass`

    def node_rows(self, tensor: Tensor) -> Tensor:
        """The rows of the nodes of this batch in a tensor with a row for each node of the dataset."""
        return self.chunk.rows(tensor, self.constants.nodes, self.number)

    def csrs(self, pair: MatrixPair) -> tuple[CSR, CSR]:
        return pair.batch_csrs(self.chunk, self.number)

    def linear_map(self, pair: MatrixPair) -> LinearMap:
        return LinearMap.from_csr(*self.csrs(pair))

    @cached_property
    def graph_of_node(self) -> Tensor:
        """(N,) in 0..B-1."""
        graphs = torch.arange(len(self.num_nodes), device=self.num_nodes.device)
        return graphs.repeat_interleave(self.num_nodes, output_size=len(self.node_feats))

    @cached_property
    def over_graphs(self) -> LinearMap:
        """Σ_i h_i over the nodes of each graph: (N, D) -> (B, D)."""
        # `self` in a closure would be a reference cycle.
        members, graph_of_node = self.members, self.graph_of_node
        return LinearMap(lambda x: multiply(members, x), lambda grad: grad.index_select(0, graph_of_node))

    @cached_property
    def edge_sums(self) -> Tensor:
        """Σ_{j ∈ N(i)} e_ij: (N, Q)."""
        return self.node_rows(self.constants.edge_sums)

    @cached_property
    def self_and_neighbors(self) -> LinearMap:
        """h_i + Σ_{j ∈ N(i)} h_j: (N, D) -> (N, D); on near-complete graphs, the sum over the graph and the complement."""
        if not self.constants.near_complete[self.graphs].all():
            return self.linear_map(self.constants.self_and_neighbors)
        complement = self.constants.complement
        members, graph_of_node = self.members, self.graph_of_node

        def apply(csr: CSR, x: Tensor) -> Tensor:
            total = multiply(members, x).index_select(0, graph_of_node)
            return total.add_(multiply(csr, x)) if len(csr.columns) else total

        csr, transpose = self.csrs(complement)
        return LinearMap(lambda x: apply(csr, x), lambda grad: apply(transpose, grad))

    @cached_property
    def cross_products(self) -> LinearMap:
        """h_i ⊗ ψ + Σ_{j ∈ N(i)} h_j ⊗ e_ij, a row for each edge feature: (N, D) -> (N · Q, D)."""
        return self.linear_map(self.constants.cross_products)

    @cached_property
    def channels(self) -> LinearMap:
        """B_p (B_pᵀ x) of each channel p of EGCN: (N, H) -> (N · P, H)."""
        first, second = (self.linear_map(pair) for pair in self.constants.channels)
        return LinearMap(
            lambda x: second.apply(first.apply(x)),
            lambda grad: first.apply_transpose(second.apply_transpose(grad)),
        )

    @cached_property
    def edge_types(self) -> tuple[LinearMap, Tensor]:
        """Sum over the edges of a node and its void edge, (V, R) -> (N, R); and the V distinct edge vectors, (V, Q)."""
        few = self.constants.edge_type_counts
        if few is not None and few.complete[self.graphs].all():
            return LinearMap.from_dense(self.node_rows(few.counts)), few.table
        vectors, offsets, matrix = self.constants.graphwise_edge_types
        return self.linear_map(matrix), self.chunk.rows(vectors, offsets, self.number)

    @cached_property
    def tuples(self) -> BatchTuples:
        """The node-edge tuples, each computed once wherever it is summed."""
        constants = self.constants.tuples
        edge_vectors, offsets, _ = self.constants.edge_vectors
        return BatchTuples(
            nodes=LinearMap.select(*self.csrs(constants.nodes)),
            vectors=LinearMap.select(*self.csrs(constants.vectors)),
            void=LinearMap.select(*self.csrs(constants.void)),
            total=self.linear_map(constants.total),
            counts=self.node_rows(constants.counts),
            edge_vectors=self.chunk.rows(edge_vectors, offsets, self.number),
        )


_SUMS: WeakKeyDictionary[Batch, BatchSums] = WeakKeyDictionary()


def batch_sums(batch: Batch) -> BatchSums:
    """The sums of a batch, made once."""
    if batch not in _SUMS:
        _SUMS[batch] = BatchSums(batch)
    return _SUMS[batch]
