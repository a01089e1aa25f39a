"""Exact ranks of integers, pairs and rows of integers: the HASH of colour refinement, without hashing.

Equal items have equal ranks, and ranks are in the order of the items.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from egin_dgl.data.ragged import gather_rows

# Upper bound of packed keys, so that no product overflows int64. Tests lower it to reach the other branches.
KEY_LIMIT = 2**62


def sorting_order(keys: np.ndarray, bound: int) -> np.ndarray:
    """Positions (n,) that sort integers 0 <= keys < bound; ties in any order."""
    shift = len(keys).bit_length()
    if bound << shift > KEY_LIMIT:
        return np.argsort(keys)
    # Sorting keys with their position in the low bits is faster than an argsort.
    packed = keys << shift
    packed |= np.arange(len(keys))
    packed.sort()
    packed &= (1 << shift) - 1
    return packed


def dense_rank(keys: np.ndarray, bound: int) -> tuple[np.ndarray, int]:
    """Rank integers 0 <= keys < bound: (n,) -> (n,) ranks without gaps, and the number of distinct keys."""
    if bound <= 4 * len(keys) + 1024:  # marking the values that occur is cheaper than sorting
        present = np.zeros(bound, dtype=bool)
        present[keys] = True
        number = np.cumsum(present)
        return number[keys] - 1, int(number[-1]) if bound else 0
    order = sorting_order(keys, bound)
    starts = run_starts(keys[order])
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.cumsum(starts) - 1
    return ranks, int(np.count_nonzero(starts))


def combine(high: np.ndarray, low: np.ndarray, high_bound: int, low_bound: int) -> tuple[np.ndarray, int]:
    """Codes of the pairs (high, low) in lexicographic order, and an upper bound of the codes."""
    if high_bound * low_bound <= KEY_LIMIT:
        return high * low_bound + low, high_bound * low_bound
    order = np.lexsort((low, high))
    codes = np.empty(len(high), dtype=np.int64)
    codes[order] = np.cumsum(run_starts(high[order]) | run_starts(low[order])) - 1
    return codes, len(high)


def run_starts(ordered: np.ndarray) -> np.ndarray:
    """True where a sorted array takes a new value, including the first position."""
    starts = np.empty(len(ordered), dtype=bool)
    starts[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return starts


def run_heads(starts: np.ndarray) -> np.ndarray:
    """For each position, the start of its run of equal values."""
    return np.maximum.accumulate(np.arange(len(starts)) * starts)


@dataclass(frozen=True)
class Rows:
    """Rows of different lengths in one flat array, in ascending order of length: a dense matrix for each length."""

    lengths: np.ndarray  # (n,)
    blocks: list[tuple[slice, int, int]]  # for each length: the rows, the start of their entries, the length

    @classmethod
    def from_lengths(cls, lengths: np.ndarray) -> "Rows":
        """The layout of rows with these ascending lengths (n,)."""
        bounds = [*np.flatnonzero(run_starts(lengths)).tolist(), len(lengths)]
        blocks, start = [], 0
        for first, end in zip(bounds[:-1], bounds[1:], strict=True):
            length = int(lengths[first])
            blocks.append((slice(first, end), start, length))
            start += (end - first) * length
        return cls(lengths, blocks)

    @property
    def max_length(self) -> int:
        return self.blocks[-1][2] if self.blocks else 0

    def matrices(self, flat: np.ndarray, min_length: int = 1) -> Iterator[tuple[slice, np.ndarray]]:
        """The rows of each length, and their entries as a view (rows, length)."""
        for block, start, length in self.blocks:
            if length >= min_length:
                count = block.stop - block.start
                yield block, flat[start : start + count * length].reshape(count, length)

    def sort(self, flat: np.ndarray) -> None:
        """Sort the entries of every row in place."""
        for _, matrix in self.matrices(flat, min_length=2):
            matrix.sort(axis=1)


def signature_slots(classes: np.ndarray, count: int, rows: Rows, flat: np.ndarray, base: int) -> np.ndarray:
    """Slots (n,) of the signatures (class, row): the number of smaller signatures, so equal signatures share a slot.

    The class and as many entries as fit are packed into one integer. Only rows that are tied after sorting these are
    compared by their other entries.

    Args:
        classes: (n,) in 0..count-1; rows of one class have the same length.
        rows, flat: The rows, sorted, with entries in 0..base-1.
    """
    width = 0
    while width < rows.max_length and count * base ** (width + 1) <= KEY_LIMIT:
        width += 1
    keys = classes * base**width
    weights = base ** np.arange(width - 1, -1, -1)
    for block, matrix in rows.matrices(flat):
        fitting = min(width, matrix.shape[1])
        keys[block] += matrix[:, :fitting] @ weights[:fitting]
    order = sorting_order(keys, count * base**width)
    slots = np.empty(len(keys), dtype=np.int64)
    slots[order] = run_heads(run_starts(keys[order]))
    if width < rows.max_length:
        tied = np.bincount(slots)[slots] > 1
        for block, matrix in rows.matrices(flat, min_length=width + 1):
            if tied[block].any():
                _split_ties(slots[block], tied[block], matrix[:, width:])
    return slots


def _split_ties(slots: np.ndarray, tied: np.ndarray, rest: np.ndarray) -> None:
    """Split the slots (n,) of tied rows, in place, by the other entries (n, k) of these rows."""
    index = np.flatnonzero(tied)
    rest = rest[index]
    rest = rest[:, (rest != rest[0]).any(axis=0)]  # nodes of high degree often differ in few entries
    order = np.lexsort((*rest.T[::-1], slots[index]))
    index, rest = index[order], rest[order]
    starts = run_starts(slots[index])
    heads = run_heads(starts)
    starts[1:] |= (rest[1:] != rest[:-1]).any(axis=1)
    slots[index] += run_heads(starts) - heads


def multiset_slots(
    first: np.ndarray, bound: int, offsets: np.ndarray, flat: np.ndarray, base: int
) -> np.ndarray:
    """Slots (n,) of the signatures (first, size, multiset).

    Args:
        first: (n,) in 0..bound-1.
        offsets: Multiset i has the entries ``flat[offsets[i]:offsets[i + 1]]``, in 0..base-1.
    """
    lengths = np.diff(offsets)
    order = np.argsort(lengths, kind="stable")
    rows, (entries, _) = Rows.from_lengths(lengths[order]), gather_rows(offsets, order)
    flat = flat[entries]
    rows.sort(flat)
    classes, count = dense_rank(*combine(first[order], rows.lengths, bound, rows.max_length + 1))
    slots = np.empty(len(first), dtype=np.int64)
    slots[order] = signature_slots(classes, count, rows, flat, base)
    return slots
