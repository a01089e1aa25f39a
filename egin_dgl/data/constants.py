"""What models need of a dataset that never changes in training: made when first asked for, then kept.

N nodes, E directed edges j → i. Sums over a neighbourhood include the node itself where the models' equations do.
"""

from functools import cached_property

import torch
from torch import Tensor

from egin_dgl.data.csr import BlockCSR, Offsets, with_transpose

# Up to so many distinct edge vectors, a node keeps how often each occurs around it.
FEW_EDGE_VECTORS = 64
# With so large a share of all pairs joined, the pairs that are not joined are fewer to add up.
NEAR_COMPLETE = 0.75


class Constants:
    """Sparse matrices and sums of one dataset, on its device; a matrix comes with its transpose."""

    def __init__(self, dataset):
        self.nodes, self.edges = Offsets(dataset.node_offsets), Offsets(dataset.edge_offsets)
        self.src, self.dst, self.edge_feats = dataset.src, dataset.dst, dataset.edge_feats
        self.own = torch.arange(self.nodes.total, device=self.src.device)

    @cached_property
    def edge_sums(self) -> Tensor:
        """Σ_{j ∈ N(i)} e_ij: (N, Q)."""
        sums = self.edge_feats.new_zeros(self.nodes.total, self.edge_feats.shape[1])
        return sums.index_add_(0, self.dst, self.edge_feats)

    @cached_property
    def closed(self) -> tuple[BlockCSR, BlockCSR]:
        """A + I: each node's neighbours and the node itself."""
        row, column = torch.cat([self.dst, self.own]), torch.cat([self.src, self.own])
        return with_transpose(row, column, None, self.nodes, self.nodes)

    @cached_property
    def beyond_all(self) -> tuple[BlockCSR, BlockCSR] | None:
        """A + I − J, where J joins all pairs of a graph: what is left to add to the sum over all of a graph.

        None where few pairs are joined.
        """
        sizes, first = self.nodes.sizes, self.nodes.on_device[:-1]
        pairs = Offsets(torch.cat([first.new_zeros(1), (sizes * sizes).cumsum(0)]))
        if len(self.src) + self.nodes.total < NEAR_COMPLETE * pairs.total:
            return None
        row, column = torch.cat([self.dst, self.own]), torch.cat([self.src, self.own])
        graph = self.nodes.spread(torch.arange(len(sizes), device=row.device))[row]
        # The pair (i, j) of a graph of n nodes is number n · i + j of the graph's pairs.
        number = pairs.on_device[graph] + (row - first[graph]) * sizes[graph] + column - first[graph]
        joined = number.bincount(minlength=pairs.total)
        other = (joined != 1).nonzero().squeeze(1)
        graph = pairs.spread(torch.arange(len(sizes), device=row.device))[other]
        within = other - pairs.on_device[graph]
        row, column = within // sizes[graph] + first[graph], within % sizes[graph] + first[graph]
        weight = (joined[other] - 1).to(self.edge_feats.dtype)
        return with_transpose(row, column, weight, self.nodes, self.nodes)

    @cached_property
    def crossed(self) -> tuple[BlockCSR, BlockCSR]:
        """Rows (i, q) and columns j with the weights e_ijq, and ψ = 1 for j = i.

        Only what is not zero is an entry: one a directed edge where edges have one of several types.
        """
        kinds = self.edge_feats.shape[1]
        edge, kind = self.edge_feats.nonzero(as_tuple=True)
        row = torch.cat(
            [self.dst[edge] * kinds + kind, torch.arange(len(self.own) * kinds, device=edge.device)]
        )
        column = torch.cat([self.src[edge], self.own.repeat_interleave(kinds)])
        weight = torch.cat([self.edge_feats[edge, kind], self.edge_feats.new_ones(len(self.own) * kinds)])
        return with_transpose(row, column, weight, Offsets(self.nodes.on_device * kinds), self.nodes)

    @cached_property
    def edge_kinds(self) -> tuple[Tensor, Tensor] | None:
        """The distinct edge vectors (K, Q), and which of them each edge has; None where they are many."""
        # More than a few among the first edges are more than a few among all.
        if len(torch.unique(self.edge_feats[:4096], dim=0)) > FEW_EDGE_VECTORS:
            return None
        table, kind = distinct_rows(self.edge_feats)
        return (table, kind) if len(table) <= FEW_EDGE_VECTORS else None

    @cached_property
    def edge_table(self) -> Tensor:
        """The few distinct edge vectors, and the void edge δ = 0 last: (K + 1, Q)."""
        table, _ = self._few_kinds
        return torch.cat([table, table.new_zeros(1, table.shape[1])])

    @cached_property
    def edge_counts(self) -> Tensor:
        """How often each vector of the table occurs around a node, δ once for the node itself: (N, K + 1)."""
        _, kind = self._few_kinds
        columns = len(self.edge_table)
        counts = self.edge_feats.new_zeros(self.nodes.total * columns)
        counts.index_add_(0, self.dst * columns + kind, self.edge_feats.new_ones(len(kind)))
        counts = counts.view(-1, columns)
        counts[:, -1] += 1
        return counts

    @property
    def _few_kinds(self) -> tuple[Tensor, Tensor]:
        if self.edge_kinds is None:
            raise ValueError("the distinct edge vectors are many: use edge_vectors and around")
        return self.edge_kinds

    @cached_property
    def edge_vectors(self) -> tuple[Tensor, Offsets]:
        """Where vectors are many: the distinct ones of each graph and the void edge δ = 0, and where a graph's lie."""
        return self._vectors[:2]

    @cached_property
    def around(self) -> tuple[BlockCSR, BlockCSR]:
        """Rows are nodes; columns the vectors of `edge_vectors` on their edges, and δ for the node itself."""
        _, offsets, vector = self._vectors
        return with_transpose(torch.cat([self.dst, self.own]), vector, None, self.nodes, offsets)

    @cached_property
    def _vectors(self) -> tuple[Tensor, Offsets, Tensor]:
        table, kind = distinct_rows(self.edge_feats)
        table = torch.cat([table, table.new_zeros(1, table.shape[1])])
        graphs = torch.arange(len(self.edges.on_host) - 1, device=kind.device)
        # Ordered by graph, then by vector: each edge's, then each node's δ.
        of_edges = self.edges.spread(graphs) * len(table) + kind
        of_nodes = self.nodes.spread(graphs) * len(table) + len(table) - 1
        keys, vector = torch.unique(torch.cat([of_edges, of_nodes]), return_inverse=True)
        counts = (keys // len(table)).bincount(minlength=len(graphs))
        return table[keys % len(table)], Offsets(torch.cat([counts.new_zeros(1), counts.cumsum(0)])), vector


def distinct_rows(feats: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows (K, Q), and which of them each row is (E,).

    Rows are compared by a number made of their bits, as sorting numbers is much faster than sorting rows; should two
    rows share a number, they are sorted after all.
    """
    bits = feats.contiguous().view(torch.int32).to(torch.int64)
    key = torch.zeros(len(feats), dtype=torch.int64, device=feats.device)
    for column in bits.unbind(1):
        key = (key ^ column) * 6364136223846793005 + 1442695040888963407  # one step of Knuth's MMIX generator
        key = key ^ (key >> 29)
    keys, kind = torch.unique(key, return_inverse=True)
    example = torch.zeros_like(keys).scatter_(0, kind, torch.arange(len(kind), device=feats.device))
    table = feats[example]
    if not torch.equal(table[kind], feats):
        table, kind = torch.unique(feats, dim=0, return_inverse=True)
    return table, kind
