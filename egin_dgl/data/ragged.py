"""Rows of different lengths concatenated in one flat array: row r has the entries offsets[r]:offsets[r + 1]."""

import numpy as np
import torch
from torch import Tensor


class Offsets:
    """(G + 1,): graph g has the rows offsets[g]:offsets[g + 1] of a flat tensor.

    Held on the device and on the host: batch sizes are computed on the host, which must not wait for a GPU.
    """

    def __init__(self, offsets: Tensor):
        # A copy: sending the tensor to another process moves it to shared memory, and a view would point to what it left.
        self.on_device, self.on_host = offsets, np.array(offsets.cpu())

    @property
    def sizes(self) -> Tensor:
        """(G,) rows of each graph."""
        return self.on_device.diff()

    @property
    def total(self) -> int:
        """Rows of all graphs."""
        return int(self.on_host[-1])

    def repeat(self, values: Tensor) -> Tensor:
        """Repeat the value of each graph for each of its rows: (G,) -> (total,)."""
        return values.repeat_interleave(self.sizes, output_size=self.total)


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Offsets of rows with these lengths: (R,) -> (R + 1,) int64."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def row_positions(offsets: Tensor, rows: Tensor, total: int | None = None) -> tuple[Tensor, Tensor]:
    """Positions of the entries of the given rows, in that order, and the length of each row.

    Args:
        offsets: (R + 1,).
        rows: numbers of rows, possibly repeated.
        total: number of entries, if known; without it, torch waits for a GPU to count them.
    """
    first = offsets[rows]
    lengths = offsets[rows + 1] - first
    shift = first - (lengths.cumsum(0) - lengths)
    shift = shift.repeat_interleave(lengths, output_size=total)
    return torch.arange(len(shift), device=shift.device) + shift, lengths


def gather_rows(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`row_positions` for numpy arrays, with the offsets (n + 1,) of the gathered rows instead of their lengths."""
    # Copies: torch refuses arrays with negative strides and warns of read-only ones.
    given, chosen = (torch.from_numpy(np.array(x, order="C")) for x in (offsets, rows))
    positions, lengths = row_positions(given, chosen)
    return positions.numpy(), offsets_of(lengths.numpy())
