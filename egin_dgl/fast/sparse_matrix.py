"""Block-diagonal sparse matrices with one block per graph; the matrix of a batch is gathered from its blocks."""

from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from egin_dgl.data.loader import Chunk
from egin_dgl.data.ragged import Offsets


class CSR(NamedTuple):
    """A sparse matrix by rows, in the format of `torch.embedding_bag`: the entries of row r begin at starts[r]."""

    starts: Tensor  # (R,) int32
    columns: Tensor  # (K,) int32
    weights: Tensor | None  # (K,), or None where all are one


@dataclass(frozen=True, eq=False)
class BlockCSR:
    """A sparse matrix over a dataset; rows, columns and entries of each graph are contiguous.

    Entries are sorted by row, then by column, so that equal matrices have equal tensors.
    """

    rows: Offsets
    entries: Offsets
    column_ranges: Offsets
    starts: Tensor  # (R,) int32: first entry of a row, counted from the first entry of its graph
    columns: Tensor  # (K,) int32, counted from the first column of the graph
    weights: Tensor | None  # (K,), or None where all are one

    @classmethod
    def from_entries(
        cls, row: Tensor, column: Tensor, weight: Tensor | None, rows: Offsets, column_ranges: Offsets
    ) -> "BlockCSR":
        """From entries in any order, with rows and columns numbered across the dataset."""
        order = torch.argsort(column, stable=True)
        order = order[torch.argsort(row[order], stable=True)]
        row, column = row[order], column[order]
        starts = torch.cat([row.new_zeros(1), row.bincount(minlength=rows.total).cumsum(0)])
        entries = Offsets(starts[rows.on_device])
        return cls(
            rows,
            entries,
            column_ranges,
            (starts[:-1] - rows.repeat(entries.on_device[:-1])).int(),
            (column - entries.repeat(column_ranges.on_device[:-1])).int(),
            None if weight is None or bool((weight == 1).all()) else weight[order],
        )

    def equals(self, other: "BlockCSR") -> bool:
        """Whether both are the same matrix."""
        if (self.weights is None) != (other.weights is None):
            return False
        pairs = [(self.starts, other.starts), (self.columns, other.columns)]
        pairs += [(self.rows.on_device, other.rows.on_device)]
        pairs += [(self.column_ranges.on_device, other.column_ranges.on_device)]
        if self.weights is not None and other.weights is not None:
            pairs.append((self.weights, other.weights))
        return all(torch.equal(mine, theirs) for mine, theirs in pairs)

    def batch_csr(self, chunk: Chunk, number: int) -> CSR:
        """The matrix of one batch of a chunk."""
        rows, entries = chunk.layout(self.rows), chunk.layout(self.entries)
        gathered = _GATHERED.setdefault(chunk, {})
        if self not in gathered:
            ranges = chunk.layout(self.column_ranges)
            gathered[self] = CSR(
                self.starts[rows.positions] + rows.repeat(entries.starts.int()),
                self.columns[entries.positions] + entries.repeat(ranges.starts.int()),
                None if self.weights is None else self.weights[entries.positions],
            )
        starts, columns, weights = gathered[self]
        weights = None if weights is None else entries.slice(weights, number)
        return CSR(rows.slice(starts, number), entries.slice(columns, number), weights)


# The matrices of all batches of a chunk, gathered at once.
_GATHERED: WeakKeyDictionary[Chunk, dict[BlockCSR, CSR]] = WeakKeyDictionary()


class MatrixPair(NamedTuple):
    """A matrix and its transpose, which gradients need; the same object if the matrix is symmetric."""

    matrix: BlockCSR
    transpose: BlockCSR

    @classmethod
    def from_entries(
        cls, row: Tensor, column: Tensor, weight: Tensor | None, rows: Offsets, column_ranges: Offsets
    ) -> "MatrixPair":
        matrix = BlockCSR.from_entries(row, column, weight, rows, column_ranges)
        transpose = BlockCSR.from_entries(column, row, weight, column_ranges, rows)
        return cls(matrix, matrix if matrix.equals(transpose) else transpose)

    def batch_csrs(self, chunk: Chunk, number: int) -> tuple[CSR, CSR]:
        """Both for one batch of a chunk."""
        csr = self.matrix.batch_csr(chunk, number)
        return csr, csr if self.transpose is self.matrix else self.transpose.batch_csr(chunk, number)
