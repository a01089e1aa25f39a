"""Exact places of signatures in their sorted order: the HASH of colour refinement, without hashing.

A signature is a class and a sorted row of codes. Its place in the sorted order of all signatures is an injective
name for it: two signatures share a place if and only if they are equal.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from egin_dgl.data.ragged import gather_rows
from egin_dgl.ewl import ranking
from egin_dgl.ewl.ranking import combine, dense_rank, run_heads, run_starts, sorting_order

# Compare-exchange steps that sort 2, 3 or 4 columns, all rows at once; most atoms have no more neighbours.
NETWORKS = {
    2: ((0, 1),),
    3: ((0, 1), (1, 2), (0, 1)),
    4: ((0, 1), (2, 3), (0, 2), (1, 3), (1, 2)),
}


@dataclass(frozen=True)
class Rows:
    """The layout of rows of different lengths in one flat array, in ascending order of length."""

    lengths: np.ndarray  # (n,)
    blocks: list[tuple[slice, int, int]]  # for every length: the rows, where their entries begin, the length

    @classmethod
    def of_lengths(cls, lengths: np.ndarray) -> "Rows":
        """Lay out rows whose lengths (n,) are in ascending order."""
        bounds = [*np.flatnonzero(run_starts(lengths)).tolist(), len(lengths)]
        blocks, place = [], 0
        for first, end in zip(bounds[:-1], bounds[1:], strict=True):
            length = int(lengths[first])
            blocks.append((slice(first, end), place, length))
            place += (end - first) * length
        return cls(lengths, blocks)

    @property
    def longest(self) -> int:
        return self.blocks[-1][2] if self.blocks else 0

    def matrices(self, flat: np.ndarray, least: int = 1) -> Iterator[tuple[slice, np.ndarray]]:
        """The rows of each length from `least` on, and their entries as a dense matrix (rows, length)."""
        for block, place, length in self.blocks:
            if length >= least:
                count = block.stop - block.start
                yield block, flat[place : place + count * length].reshape(count, length)

    def sort(self, flat: np.ndarray) -> None:
        """Sort the entries of every row in place."""
        for _, matrix in self.matrices(flat, least=2):
            sort_matrix(matrix)


def sort_matrix(matrix: np.ndarray) -> None:
    """Sort each row in place."""
    steps = NETWORKS.get(matrix.shape[1])
    if steps is None:
        matrix.sort(axis=1)
        return
    columns = list(matrix.T)
    for i, j in steps:
        low = np.minimum(columns[i], columns[j])
        np.maximum(columns[i], columns[j], out=columns[j])
        columns[i][:] = low


def signature_slots(classes: np.ndarray, count: int, rows: Rows, flat: np.ndarray, base: int) -> np.ndarray:
    """Slots of the signatures (class, row) in sorted order: (n,) -> (n,).

    A slot is the number of smaller signatures, so equal slots mean equal signatures. The classes are 0..count-1 and
    the rows of one class have one length; entries of `flat` are in 0..base-1 and sorted within each row.

    The class and as many entries as fit are one number, which is sorted; only rows that this leaves tied are
    compared by the rest of their entries.
    """
    width = codes_that_fit(count, base, rows.longest)
    key = classes * base**width
    weights = base ** np.arange(width - 1, -1, -1)
    for block, matrix in rows.matrices(flat):
        known = min(width, matrix.shape[1])
        key[block] += matrix[:, :known] @ weights[:known]
    order = sorting_order(key, count * base**width)
    slots = np.empty(len(key), dtype=np.int64)
    slots[order] = run_heads(run_starts(key[order]))
    if width < rows.longest:
        tied = shared(slots)
        for block, matrix in rows.matrices(flat, least=width + 1):
            if tied[block].any():
                split_ties(slots[block], tied[block], matrix[:, width:])
    return slots


def codes_that_fit(count: int, base: int, most: int) -> int:
    """How many codes 0..base-1, but no more than `most`, one number holds beside a class 0..count-1."""
    width = 0
    while width < most and count * base ** (width + 1) <= ranking.KEY_LIMIT:
        width += 1
    return width


def shared(slots: np.ndarray) -> np.ndarray:
    """Which rows (n,) share their slot with another."""
    return np.bincount(slots)[slots] > 1


def split_ties(slots: np.ndarray, tied: np.ndarray, rest: np.ndarray) -> None:
    """Split the slots (n,) of tied rows, in place, by the other entries (n, k) of these rows."""
    places = np.flatnonzero(tied)
    rest = rest[places]
    rest = rest[
        :, (rest != rest[0]).any(axis=0)
    ]  # large hubs are tied because all of their entries are equal
    order = np.lexsort((*rest.T[::-1], slots[places]))
    places, rest = places[order], rest[order]
    steps = run_starts(slots[places])
    before = run_heads(steps)
    steps[1:] |= (rest[1:] != rest[:-1]).any(axis=1)
    slots[places] += run_heads(steps) - before


def multiset_slots(
    own: np.ndarray, bound: int, offsets: np.ndarray, flat: np.ndarray, base: int
) -> np.ndarray:
    """Slots (n,) of the signatures (own, how many, multiset) for rows of any length, flat[offsets[i]:offsets[i + 1]].

    own (n,) is in 0..bound-1, the entries of flat are in 0..base-1.
    """
    lengths = np.diff(offsets)
    order = np.argsort(lengths, kind="stable")
    rows, (places, _) = Rows.of_lengths(lengths[order]), gather_rows(offsets, order)
    flat = flat[places]
    rows.sort(flat)
    classes, count = dense_rank(*combine(own[order], rows.lengths, bound, rows.longest + 1))
    slots = np.empty(len(own), dtype=np.int64)
    slots[order] = signature_slots(classes, count, rows, flat, base)
    return slots
