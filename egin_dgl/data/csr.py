"""Sparse matrices made of one block a graph, from which the matrix of any batch is a few gathers.

A row of such a matrix says what a sum runs over: the neighbours of a node, or its neighbours by one kind of edge.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


class Offsets:
    """(G + 1,): graph g has the rows offsets[g]:offsets[g + 1] of a flat tensor.

    Known on the device, and on the host where sizes of batches are decided: asking a GPU would mean to wait for it.
    """

    def __init__(self, offsets: Tensor):
        self.on_device, self.on_host = offsets, offsets.cpu().numpy()

    @property
    def sizes(self) -> Tensor:
        """(G,) rows of each graph."""
        return self.on_device.diff()

    @property
    def total(self) -> int:
        """Rows of all graphs."""
        return int(self.on_host[-1])

    def spread(self, values: Tensor) -> Tensor:
        """A value of each graph, repeated for each of its rows."""
        return values.repeat_interleave(self.sizes, output_size=self.total)


@dataclass(frozen=True, eq=False)
class BlockCSR:
    """Row r is Σ weight · column over its entries; rows, columns and entries of graph g lie end to end.

    Entries are ordered by row, then by column, so that equal matrices have equal tensors.
    """

    rows: Offsets
    entries: Offsets
    grid: Offsets  # of the columns
    starts: Tensor  # (R,) int32: the first entry of a row, counted from the first entry of its graph
    columns: Tensor  # (K,) int32, counted from the first column of the graph
    weights: Tensor | None  # (K,), or None where all are one

    @classmethod
    def of_entries(
        cls, row: Tensor, column: Tensor, weight: Tensor | None, rows: Offsets, grid: Offsets
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
            grid,
            (starts[:-1] - rows.spread(entries.on_device[:-1])).int(),
            (column - entries.spread(grid.on_device[:-1])).int(),
            None if weight is None or bool((weight == 1).all()) else weight[order],
        )

    def equals(self, other: "BlockCSR") -> bool:
        """Whether both are the same matrix."""
        pairs = [(self.starts, other.starts), (self.columns, other.columns)]
        pairs += [(self.rows.on_device, other.rows.on_device), (self.grid.on_device, other.grid.on_device)]
        if self.weights is not None and other.weights is not None:
            pairs.append((self.weights, other.weights))
        elif self.weights is not other.weights:
            return False
        return all(torch.equal(mine, theirs) for mine, theirs in pairs)


def with_transpose(
    row: Tensor, column: Tensor, weight: Tensor | None, rows: Offsets, grid: Offsets
) -> tuple[BlockCSR, BlockCSR]:
    """The matrix of these entries and its transpose, which gradients need; one and the same if it is symmetric."""
    links = BlockCSR.of_entries(row, column, weight, rows, grid)
    transposed = BlockCSR.of_entries(column, row, weight, grid, rows)
    return links, links if links.equals(transposed) else transposed
