"""Exact ranks of integer sequences: the HASH of colour refinement, without hashing.

A signature is a class and a sorted row of codes. Its place in the sorted order of all signatures is an injective
name for it: two signatures share a place if and only if they are equal. Codes are packed into 64-bit words as far
as they fit, and a later word is looked at only for the signatures that the words before it left tied.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

# Packed keys stay within this bound, so that no product overflows int64. Tests lower it to force the other path.
KEY_LIMIT = 2**62
# Rows still tied after this many words are almost surely equal: comparing the rest as bytes beats more passes.
MAX_WORDS = 8
# Compare-exchange steps that sort 2, 3 or 4 columns, all rows at once; most atoms have no more neighbours.
NETWORKS = {
    2: ((0, 1),),
    3: ((0, 1), (1, 2), (0, 1)),
    4: ((0, 1), (2, 3), (0, 2), (1, 3), (1, 2)),
}
FEW_ROWS = 64  # so few are sorted faster one by one


def sorting_order(keys: np.ndarray, bound: int) -> np.ndarray:
    """Positions (n,) that put integers 0 <= keys < bound in order; equal keys in any order."""
    shift = len(keys).bit_length()
    if bound << shift > KEY_LIMIT:
        return np.argsort(keys)
    packed = keys << shift  # sorting values with their position in the low bits is faster than an argsort
    packed |= np.arange(len(keys))
    packed.sort()
    packed &= (1 << shift) - 1
    return packed


def dense_rank(keys: np.ndarray, bound: int) -> tuple[np.ndarray, int]:
    """Rank integers 0 <= keys < bound by value: (n,) -> (n,) ranks without gaps, and how many there are.

    Keys without gaps are returned as they are, not copied.
    """
    if len(keys) == 0:
        return np.zeros(0, dtype=np.int64), 0
    if bound <= 4 * len(keys) + 1024:  # filling a table of this size is cheaper than a sort
        present = np.zeros(bound, dtype=bool)
        present[keys] = True
        if present.all():
            return keys, bound
        table = np.cumsum(present)
        count = int(table[-1])
        table -= 1
        return table[keys], count
    order = sorting_order(keys, bound)
    ranks = np.empty(len(keys), dtype=np.int64)
    steps = _run_starts(keys[order])
    ranks[order] = np.cumsum(steps) - 1
    return ranks, int(np.count_nonzero(steps))


def combine(high: np.ndarray, low: np.ndarray, high_bound: int, low_bound: int) -> tuple[np.ndarray, int]:
    """Codes of the pairs (high, low) in lexicographic order, and a bound on them; equal codes, equal pairs.

    The codes may take the place of `high`: a new array costs more than the sums where there are millions.
    """
    if high_bound * low_bound <= KEY_LIMIT:
        codes = high
        codes *= low_bound
        codes += low
        return codes, high_bound * low_bound
    order = np.lexsort((low, high))
    codes = np.empty(len(high), dtype=np.int64)
    codes[order] = np.cumsum(_run_starts(high[order]) | _run_starts(low[order])) - 1
    return codes, len(high)


@dataclass(frozen=True)
class Rows:
    """The layout of rows of different lengths in one flat array, in ascending order of length.

    starts (n,) and lengths (n,) say where each row lies; blocks holds (first row, end row, length) for every length.
    """

    starts: np.ndarray
    lengths: np.ndarray
    blocks: list[tuple[int, int, int]]

    @classmethod
    def of_lengths(cls, lengths: np.ndarray) -> "Rows":
        """Lay out rows whose lengths (n,) are in ascending order."""
        bounds = np.flatnonzero(_run_starts(lengths)).tolist() + [len(lengths)]
        blocks = [(i, j, int(lengths[i])) for i, j in zip(bounds[:-1], bounds[1:], strict=True)]
        return cls(np.cumsum(lengths) - lengths, lengths, blocks)

    def take(self, rows: np.ndarray) -> "Rows":
        """Some of these rows, in ascending order, where they lie."""
        return replace(Rows.of_lengths(self.lengths[rows]), starts=self.starts[rows])

    @property
    def longest(self) -> int:
        return self.blocks[-1][2] if self.blocks else 0

    def reach(self, column: int) -> int:
        """The first row that has an entry in `column`; all rows after it have one too."""
        block = bisect_right(self.blocks, column, key=itemgetter(2))
        return self.blocks[block][0] if block < len(self.blocks) else len(self.lengths)

    def sort(self, flat: np.ndarray) -> None:
        """Sort the entries of every row in place: rows of one length are a dense matrix."""
        for first, end, length in self.blocks:
            if length > 1:
                start = self.starts[first]
                _sort_matrix(flat[start : start + (end - first) * length].reshape(end - first, length))


def class_starts(classes: np.ndarray, count: int) -> np.ndarray:
    """For each class 0..count-1, the number of items in smaller classes: (n,) -> (count,)."""
    size = np.bincount(classes, minlength=count)
    return np.cumsum(size) - size


def signature_slots(
    classes: np.ndarray, starts: np.ndarray, rows: Rows, flat: np.ndarray, base: int
) -> np.ndarray:
    """Slots of the signatures (class, row) in sorted order: (n,) -> (n,).

    A slot is the number of smaller signatures, so equal slots mean equal signatures. `starts` are the `class_starts`;
    the rows of one class must have one length, and entries of `flat` are in 0..base-1 and sorted within each row.
    """
    if base == 1:  # rows of one class are all alike
        return starts[classes]
    slots, total, column = None, len(classes), 0
    tied = None  # the rows to look at: all, until some are settled
    for _ in range(MAX_WORDS):
        # Class numbers take fewer bits than slots, which leaves more of the word to the entries.
        key, key_bound = (classes.copy(), len(starts)) if tied is None else (slots[tied], total)
        begin = column
        room = _room(key_bound, base, column, rows)
        while column < rows.longest and key_bound * base <= room:
            key *= base
            reach = rows.reach(column)
            key[reach:] += flat[rows.starts[reach:] + column]
            key_bound *= base
            column += 1
        if column > begin:
            slots = _split(slots, tied, key, key_bound)
            reach = rows.reach(column)
            if reach == len(rows.lengths):
                return slots
            crowd = np.bincount(slots, minlength=total)
            open_slots = slots[reach:] if tied is None else slots[tied[reach:]]
            left = reach + np.flatnonzero(crowd[open_slots] > 1)
            if len(left) == 0:
                return slots
            rows, tied = rows.take(left), left if tied is None else tied[left]
        else:  # not even one more code fits into a word
            break
    return _split_by_bytes(starts[classes] if slots is None else slots, tied, rows, column, flat)


def _room(key_bound: int, base: int, column: int, rows: Rows) -> int:
    """The bound to which one word is filled.

    Words that leave room for a position sort faster (see `sorting_order`), but where most rows then need a second
    word and one full word would do, that one is better.
    """
    room = KEY_LIMIT >> len(rows.lengths).bit_length()
    filled = column
    while filled < rows.longest and key_bound * base ** (filled + 1 - column) <= room:
        filled += 1
    full = key_bound * base ** min(rows.longest - column, 64) <= KEY_LIMIT
    crowded = 2 * rows.reach(filled) < len(rows.lengths)
    return KEY_LIMIT if filled == column or (full and crowded) else room


def _run_starts(ordered: np.ndarray) -> np.ndarray:
    """True where an ordered array takes a new value, the first place included."""
    steps = np.empty(len(ordered), dtype=bool)
    steps[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=steps[1:])
    return steps


def _run_heads(ordered: np.ndarray) -> np.ndarray:
    """For each place of an ordered array, the first place that holds the same value."""
    heads = np.arange(len(ordered))
    heads *= _run_starts(ordered)
    return np.maximum.accumulate(heads, out=heads)


def _sort_matrix(matrix: np.ndarray) -> None:
    """Sort each row in place."""
    steps = NETWORKS.get(matrix.shape[1])
    if steps is None or len(matrix) < FEW_ROWS:
        matrix.sort(axis=1)
        return
    columns = list(matrix.T)
    for i, j in steps:
        low = np.minimum(columns[i], columns[j])
        np.maximum(columns[i], columns[j], out=columns[j])
        columns[i][:] = low


def _split(slots: np.ndarray | None, tied: np.ndarray | None, key: np.ndarray, bound: int) -> np.ndarray:
    """Split the slots of the tied rows, or make those of all rows, by a key that keeps their order."""
    order = sorting_order(key, bound)
    heads = _run_heads(key[order])
    if tied is not None:  # positions among the tied rows, moved to where their slot begins
        before = slots[tied[order]]
        heads += before - _run_heads(before)
        order = tied[order]
        result = slots.copy()
    else:
        result = np.empty(len(key), dtype=np.int64)
    result[order] = heads
    return result


def _split_by_bytes(
    slots: np.ndarray, tied: np.ndarray | None, rows: Rows, column: int, flat: np.ndarray
) -> np.ndarray:
    """Split the tied rows by all entries from `column` on, compared as one big-endian byte string a row."""
    tied = np.arange(len(slots)) if tied is None else tied
    rest = np.zeros(len(tied), dtype=np.int64)
    for first, end, length in rows.blocks:
        if length > column:
            places = rows.starts[first:end, None] + np.arange(column, length)
            texts = np.ascontiguousarray(flat[places].astype(">i8")).view(f"V{8 * (length - column)}")
            rest[first:end] = np.unique(texts.ravel(), return_inverse=True)[1].ravel()
    key, bound = combine(slots[tied], rest, len(slots), len(tied))
    return _split(slots, tied, key, bound)
