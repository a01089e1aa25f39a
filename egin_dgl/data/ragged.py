"""Rows of different lengths laid end to end in one flat array: row r has the entries offsets[r]:offsets[r + 1]."""

import numpy as np
import torch
from torch import Tensor


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Where rows of these lengths begin, and where the last one ends: (R,) -> (R + 1,) int64."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def row_places(offsets: Tensor, rows: Tensor, total: int | None = None) -> tuple[Tensor, Tensor]:
    """Places of the entries of the given rows, in that order, and how many each of the rows has.

    total: how many they are in all, where that is known: a GPU is then not waited for.
    """
    first = offsets[rows]
    lengths = offsets[rows + 1] - first
    # An entry's place = its number among all that are taken + where its row begins − how many were taken before.
    moved = first - (lengths.cumsum(0) - lengths)
    moved = moved.repeat_interleave(lengths, output_size=total)
    return torch.arange(len(moved), device=moved.device) + moved, lengths


def gather_rows(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`row_places` on numpy arrays, with the offsets (n + 1,) of the taken rows in place of their lengths."""
    # Copies, as torch refuses arrays that are read backwards and warns of those that are read-only.
    given, chosen = (torch.from_numpy(np.array(x, order="C")) for x in (offsets, rows))
    places, lengths = row_places(given, chosen)
    return places.numpy(), offsets_of(lengths.numpy())
