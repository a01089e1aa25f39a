"""Sums and sparse matrices of a dataset that stay constant in training, computed on first access.

N nodes, E directed edges j → i. Sums over a neighborhood include the node itself where the layers' equations do. How the
sums of a batch are computed depends on its own graphs and on the training graphs, never on those of a test set.
"""

from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.edge_list import EdgeList
from egin_dgl.data.ragged import Offsets, row_positions
from egin_dgl.fast.sparse_matrix import MatrixPair
from egin_dgl.layers.egnn import doubly_stochastic_root
from egin_dgl.models.egnn import make_channels

MAX_EDGE_TYPES = 64  # up to this many distinct edge vectors, their counts around each node are stored
NEAR_COMPLETE = 0.75  # from this share of connected pairs on, the complement has fewer entries to sum


class EdgeTypeCounts(NamedTuple):
    """The K distinct edge vectors of the training graphs, and how often each occurs around a node."""

    table: Tensor  # (K + 1, Q), δ = 0 last
    counts: Tensor  # (N, K + 1), δ once for the node itself
    complete: np.ndarray  # (G,) on the host: whether the table has every edge vector of a graph


class TupleMatrices(NamedTuple):
    """What the T distinct node-edge tuples of a dataset consist of, and where they are summed."""

    nodes: MatrixPair  # (T, N): the node of each tuple
    vectors: MatrixPair  # (T, V): its edge vector
    void: MatrixPair  # (N, T): the tuple (i, δ) of each node
    total: MatrixPair  # (N, T): the tuples of a node, (i, δ) among them
    counts: Tensor  # (N, 1): how many these are


class ChannelMatrices(NamedTuple):
    """B and Bᵀ of every channel of EGCN, whose convolution is E X = B (Bᵀ X); see `layers/egnn.py`. P channels."""

    to_sources: MatrixPair  # (N · P, N): Bᵀ, a row for each node and channel
    to_targets: MatrixPair  # (N · P, N · P): B, of each channel apart


class Constants:
    """Constants of one dataset, on its device. Holds tensors of the dataset, not the dataset."""

    def __init__(self, dataset: GraphDataset):
        self.nodes, self.edges = dataset.node_rows, dataset.edge_rows
        self.src, self.dst, self.edge_feats = dataset.src, dataset.dst, dataset.edge_feats
        self.node_ids = torch.arange(self.nodes.total, device=self.src.device)
        self.signed = dataset.info.edge_attributes
        self.training: Tensor | None = None
        if dataset.training is not None:
            self.training = torch.as_tensor(dataset.training, dtype=torch.int64).to(self.src.device)

    @cached_property
    def edge_sums(self) -> Tensor:
        """Σ_{j ∈ N(i)} e_ij: (N, Q)."""
        sums = self.edge_feats.new_zeros(self.nodes.total, self.edge_feats.shape[1])
        return sums.index_add_(0, self.dst, self.edge_feats)

    @cached_property
    def self_and_neighbors(self) -> MatrixPair:
        """A + I."""
        row, column = torch.cat([self.dst, self.node_ids]), torch.cat([self.src, self.node_ids])
        return MatrixPair.from_entries(row, column, None, self.nodes, self.nodes)

    @cached_property
    def near_complete(self) -> np.ndarray:
        """(G,) on the host: whether nearly all pairs of nodes of a graph are connected."""
        nodes, edges = np.diff(self.nodes.on_host), np.diff(self.edges.on_host)
        return nodes + edges >= NEAR_COMPLETE * nodes * nodes

    @cached_property
    def complement(self) -> MatrixPair:
        """A + I − J of the near-complete graphs, where J connects all pairs of a graph; the blocks of others are empty."""
        dense = torch.from_numpy(self.near_complete).to(self.src.device)
        sizes, first = self.nodes.sizes * dense, self.nodes.on_device[:-1]
        pairs = Offsets(torch.cat([first.new_zeros(1), (sizes * sizes).cumsum(0)]))
        row, column = torch.cat([self.dst, self.node_ids]), torch.cat([self.src, self.node_ids])
        graph = self.nodes.repeat(torch.arange(len(sizes), device=row.device))[row]
        inside = dense[graph]
        row, column, graph = row[inside], column[inside], graph[inside]
        # The pair (i, j) of a graph of n nodes is number n · i + j of the pairs of the graph.
        number = pairs.on_device[graph] + (row - first[graph]) * sizes[graph] + column - first[graph]
        count = number.bincount(minlength=pairs.total)
        differs = (count != 1).nonzero().squeeze(1)
        graph = pairs.repeat(torch.arange(len(sizes), device=row.device))[differs]
        pair = differs - pairs.on_device[graph]
        row, column = pair // sizes[graph] + first[graph], pair % sizes[graph] + first[graph]
        weight = (count[differs] - 1).to(self.edge_feats.dtype)
        return MatrixPair.from_entries(row, column, weight, self.nodes, self.nodes)

    @cached_property
    def cross_products(self) -> MatrixPair:
        """Rows (i, q) and columns j with the weights e_ijq, and ψ = 1 for j = i; only non-zero entries are stored."""
        dim = self.edge_feats.shape[1]
        edge, q = self.edge_feats.nonzero(as_tuple=True)
        self_rows = torch.arange(len(self.node_ids) * dim, device=edge.device)
        row = torch.cat([self.dst[edge] * dim + q, self_rows])
        column = torch.cat([self.src[edge], self.node_ids.repeat_interleave(dim)])
        weight = torch.cat([self.edge_feats[edge, q], self.edge_feats.new_ones(len(self_rows))])
        return MatrixPair.from_entries(row, column, weight, Offsets(self.nodes.on_device * dim), self.nodes)

    @cached_property
    def edge_types(self) -> tuple[Tensor, Tensor]:
        """The distinct edge vectors, and the number of that of each edge."""
        return distinct_rows(self.edge_feats)

    @cached_property
    def edge_type_counts(self) -> EdgeTypeCounts | None:
        """The counts of the edge vectors of the training graphs; None where these are many."""
        table, edge_type = self.edge_types
        seen = torch.ones(len(table), dtype=torch.bool, device=table.device)
        if self.training is not None:
            chosen = row_positions(self.edges.on_device, self.training)[0]
            seen = torch.zeros_like(seen).index_fill_(0, edge_type[chosen], True)
        table = table[seen]
        if len(table) > MAX_EDGE_TYPES:
            return None
        table = torch.cat([table, table.new_zeros(1, table.shape[1])])
        known = seen[edge_type]
        column = (seen.cumsum(0) - 1)[edge_type[known]]
        counts = self.edge_feats.new_zeros(self.nodes.total * len(table))
        counts.index_add_(0, self.dst[known] * len(table) + column, self.edge_feats.new_ones(len(column)))
        counts = counts.view(-1, len(table))
        counts[:, -1] += 1
        graph = self.edges.repeat(torch.arange(len(self.edges.sizes), device=known.device))
        unknown = graph[~known].bincount(minlength=len(self.edges.sizes))
        return EdgeTypeCounts(table, counts, (unknown == 0).cpu().numpy())

    @cached_property
    def edge_vectors(self) -> tuple[Tensor, Offsets, Tensor]:
        """The distinct edge vectors of each graph, with δ = 0, (V, Q), and their offsets; and the number of the vector of each
        edge, then of the void edge of each node, (E + N,)."""
        table, edge_type = self.edge_types
        table = torch.cat([table, table.new_zeros(1, table.shape[1])])
        graphs = torch.arange(len(self.edges.on_host) - 1, device=edge_type.device)
        # Sorted by graph, then by vector: those of the edges, then δ of each node.
        edge_keys = self.edges.repeat(graphs) * len(table) + edge_type
        node_keys = self.nodes.repeat(graphs) * len(table) + len(table) - 1
        keys, number = torch.unique(torch.cat([edge_keys, node_keys]), return_inverse=True)
        counts = (keys // len(table)).bincount(minlength=len(graphs))
        offsets = Offsets(torch.cat([counts.new_zeros(1), counts.cumsum(0)]))
        return table[keys % len(table)], offsets, number

    @cached_property
    def graphwise_edge_types(self) -> tuple[Tensor, Offsets, MatrixPair]:
        """Where they are many: `edge_vectors` and their offsets; and a matrix with a row for each node and a column for each
        vector of the graph, δ being that of the node itself."""
        vectors, offsets, number = self.edge_vectors
        row = torch.cat([self.dst, self.node_ids])
        return vectors, offsets, MatrixPair.from_entries(row, number, None, self.nodes, offsets)

    @cached_property
    def tuples(self) -> TupleMatrices:
        """The T distinct tuples of a source node and an edge vector, with (j, δ) of every node j."""
        _, vectors, number = self.edge_vectors
        source = torch.cat([self.src, self.node_ids])
        keys, tuple_of = torch.unique(source * vectors.total + number, return_inverse=True)  # sorted by node
        node, vector = keys // vectors.total, keys % vectors.total
        last = node.bincount(minlength=self.nodes.total).cumsum(0)
        offsets = Offsets(torch.cat([last.new_zeros(1), last])[self.nodes.on_device])
        rows, of_node = torch.arange(len(keys), device=keys.device), tuple_of[len(self.src) :]
        target = torch.cat([self.dst, self.node_ids])
        return TupleMatrices(
            nodes=MatrixPair.from_entries(rows, node, None, offsets, self.nodes),
            vectors=MatrixPair.from_entries(rows, vector, None, offsets, vectors),
            void=MatrixPair.from_entries(self.node_ids, of_node, None, self.nodes, offsets),
            total=MatrixPair.from_entries(target, tuple_of, None, self.nodes, offsets),
            counts=target.bincount(minlength=self.nodes.total).to(self.edge_feats.dtype).unsqueeze(1),
        )

    @cached_property
    def channels(self) -> ChannelMatrices:
        """Of the graphs with self-loops; only non-zero entries are stored."""
        whole = EdgeList(self.src, self.dst, self.nodes.total)
        graph, channels = make_channels(whole, self.edge_feats, self.signed)
        root = doubly_stochastic_root(graph, channels)
        edge, p = root.nonzero(as_tuple=True)
        src, dst = (end[edge] for end in graph.edges())
        weight, dim = root[edge, p], root.shape[1]
        rows = Offsets(self.nodes.on_device * dim)
        return ChannelMatrices(
            MatrixPair.from_entries(src * dim + p, dst, weight, rows, self.nodes),
            MatrixPair.from_entries(dst * dim + p, src * dim + p, weight, rows, rows),
        )


BLOCK_ROWS = 2**12

_CONSTANTS: WeakKeyDictionary[GraphDataset, Constants] = WeakKeyDictionary()


def dataset_constants(dataset: GraphDataset) -> Constants:
    """The constants of a dataset, made once."""
    if dataset not in _CONSTANTS:
        _CONSTANTS[dataset] = Constants(dataset)
    return _CONSTANTS[dataset]


def distinct_rows(feats: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows (K, Q), and the number of the distinct row of each row (E,).

    Rows are compared and ordered by a hash of their bits, as sorting integers is much faster than sorting rows; rows of equal
    hash are ordered by their bits. So the order of some rows does not depend on others.
    """
    bits = feats.contiguous().view(torch.int32)
    # Some rows at a time, which a processor's cache holds: features of a large set are mapped, and not copied as a whole.
    blocks = bits.split(BLOCK_ROWS)
    key = torch.cat([hash_rows(block) for block in blocks])
    keys, number = torch.unique(key, return_inverse=True)
    table = bits[first_rows(number, len(keys))]
    if not all(map(torch.equal, (table[some] for some in number.split(BLOCK_ROWS)), blocks)):
        rows = torch.cat([key.unsqueeze(1), bits.to(torch.int64)], dim=1)
        rows, number = torch.unique(rows, dim=0, return_inverse=True)
        keys = rows[:, 0]
    return feats[first_rows(number, len(keys))], number


def hash_rows(bits: Tensor) -> Tensor:
    """A hash of each row of integers: (E, Q) -> (E,)."""
    key = torch.zeros(len(bits), dtype=torch.int64, device=bits.device)
    for column in bits.T.to(torch.int64, memory_format=torch.contiguous_format):
        key = (key ^ column) * 6364136223846793005 + 1442695040888963407  # one step of Knuth's MMIX generator
        key = key ^ (key >> 29)
    return key


def first_rows(number: Tensor, count: int) -> Tensor:
    """A row of each number: (E,) -> (count,)."""
    rows = torch.arange(len(number), device=number.device)
    return torch.zeros(count, dtype=torch.int64, device=number.device).scatter_(0, number, rows)
