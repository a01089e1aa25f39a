"""Exact ranks of integers and of pairs of them: equal things, equal rank, and the order of ranks is their order."""

import numpy as np

# Packed keys stay within this bound, so that no product overflows int64. Tests lower it to force the other path.
KEY_LIMIT = 2**62


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


def table_pays(bound: int, count: int) -> bool:
    """Whether a table of all possible values 0..bound-1 of `count` keys is cheaper to fill than a sort."""
    return bound <= 4 * count + 1024


def dense_rank(keys: np.ndarray, bound: int) -> tuple[np.ndarray, int]:
    """Rank integers 0 <= keys < bound by value: (n,) -> (n,) ranks without gaps, and how many there are."""
    if table_pays(bound, len(keys)):
        present = np.zeros(bound, dtype=bool)
        present[keys] = True
        number = np.cumsum(present)
        return number[keys] - 1, int(number[-1]) if bound else 0
    order = sorting_order(keys, bound)
    steps = run_starts(keys[order])
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.cumsum(steps) - 1
    return ranks, int(np.count_nonzero(steps))


def combine(high: np.ndarray, low: np.ndarray, high_bound: int, low_bound: int) -> tuple[np.ndarray, int]:
    """Codes of the pairs (high, low) in lexicographic order, and a bound on them; equal codes, equal pairs."""
    if high_bound * low_bound <= KEY_LIMIT:
        return high * low_bound + low, high_bound * low_bound
    order = np.lexsort((low, high))
    codes = np.empty(len(high), dtype=np.int64)
    codes[order] = np.cumsum(run_starts(high[order]) | run_starts(low[order])) - 1
    return codes, len(high)


def run_starts(ordered: np.ndarray) -> np.ndarray:
    """True where an ordered array takes a new value, the first place included."""
    steps = np.empty(len(ordered), dtype=bool)
    steps[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=steps[1:])
    return steps


def run_heads(steps: np.ndarray) -> np.ndarray:
    """For each place, the last place up to it where `steps` is True: where its run of equal values begins."""
    return np.maximum.accumulate(np.arange(len(steps)) * steps)
