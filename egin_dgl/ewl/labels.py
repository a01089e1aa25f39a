"""Labels of any kind become ranks: equal labels, equal rank, and the order of ranks is the order of the labels."""

from collections.abc import Iterable, Sequence

import numpy as np
from torch import Tensor

from egin_dgl.errors import DataError
from egin_dgl.ewl import ranking
from egin_dgl.ewl.ranking import combine, dense_rank

LONGEST_RUN = 22  # 0/1 columns read as one number: exact in float32 too


def as_labels(values: object, count: int, what: str, decimals: int | None = None) -> np.ndarray:
    """One label for each of `count` nodes or edges: an array (count, p) of numbers, or (count,) of other values.

    values: None (all alike), a tensor, an array, or a sequence of numbers, strings, tuples or equal-length vectors.
    Numbers are compared by value: -0.0 is 0.0, and `decimals` rounds first. NaN is equal to nothing, so it is
    refused.
    """
    if values is None:
        return np.zeros((count, 0), dtype=np.int64)
    array = _as_array(values)
    if array.ndim not in (1, 2) or len(array) != count:
        raise DataError(f"{what} labels must be one for each of {count} {what}s, got shape {array.shape}")
    if array.dtype.kind not in "iubf":
        return array if array.ndim == 1 else _objects(map(tuple, array.tolist()))
    array = (
        array.reshape(count, -1)
        if array.size
        else array.reshape(count, array.shape[1] if array.ndim == 2 else 1)
    )
    if array.dtype.kind == "f":
        return _clean(array, what, decimals)
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise DataError(f"{what} labels must fit into 64-bit signed integers; give them as strings")
    return array.astype(np.int64, copy=False)


def rank_labels(labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Ranks (n,) of labels in their (lexicographic) order, and how many different ones there are."""
    if labels.ndim == 1:
        return _rank_values(labels)
    codes, bound, column = None, 1, 0
    for is_binary, width in _runs(labels):
        part = labels[:, column : column + width]
        if is_binary:  # such as a one-hot code: read as one binary number, no sort needed
            weights = 2 ** np.arange(width - 1, -1, -1)
            part, size = (part @ weights.astype(labels.dtype)).astype(np.int64), 2**width
        else:
            part, size = _rank_numbers(part[:, 0])
        codes, bound = (part, size) if codes is None else combine(codes, part, bound, size)
        column += width
        if column < labels.shape[1]:
            codes, bound = dense_rank(codes, bound)
    return dense_rank(np.zeros(len(labels), dtype=np.int64) if codes is None else codes, bound)


def distinct_labels(labels: np.ndarray, ranks: np.ndarray, count: int) -> np.ndarray:
    """The label of each rank, in order."""
    holder = np.empty(count, dtype=np.int64)
    holder[ranks] = np.arange(len(ranks))
    return labels[holder]


def join_labels(parts: Sequence[np.ndarray], what: str) -> np.ndarray:
    """The labels of all parts in one array, or an error where they are not of one kind."""
    kinds = {
        f"vectors of {part.shape[1]} numbers" if part.ndim == 2 else "names" for part in parts if len(part)
    }
    if len(kinds) > 1:
        raise DataError(f"{what} labels of different kinds cannot be compared: {' and '.join(sorted(kinds))}")
    parts = [part for part in parts if len(part)] or parts[:1]
    types = {part.dtype.kind for part in parts}
    if "O" in types or ("U" in types and len(types) > 1):
        parts = [part.astype(object) for part in parts]
    elif types == {"i", "f"} and any(np.abs(p).max(initial=0) > 2**53 for p in parts if p.dtype.kind == "i"):
        raise DataError(f"{what} labels mix real numbers and integers beyond 2^53; give one kind")
    return np.concatenate(parts)


def _as_array(values: object) -> np.ndarray:
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        # numpy has no bfloat16, and float32 holds every half exactly
        return (values.float() if values.is_floating_point() and values.itemsize < 4 else values).numpy()
    if isinstance(values, np.ndarray):
        return values if values.dtype != object else _as_array(values.tolist())
    if not isinstance(values, Iterable):
        raise DataError(f"labels must be a list, an array or a tensor, got {type(values).__name__}")
    values = list(values)
    kinds = {type(value) for value in values}
    if str in kinds and len(kinds) > 1:  # numpy would read the 1 of [1, "1"] as a "1"
        return _objects(values)
    try:
        array = np.asarray(values)
    except ValueError:  # vectors of different lengths
        return _objects(values)
    return array if array.dtype != object and array.ndim <= 2 else _objects(values)


def _objects(values: Iterable) -> np.ndarray:
    values = [tuple(value) if isinstance(value, list) else value for value in values]
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _clean(array: np.ndarray, what: str, decimals: int | None) -> np.ndarray:
    """Real labels without NaN, rounded; the two zeros need no care, as ranks compare by value."""
    if (nan := np.isnan(array)).any():
        row = int(np.flatnonzero(nan.any(axis=1))[0])
        raise DataError(f"{what} {row} has the label NaN, which equals nothing: fill or remove it first")
    return array if decimals is None else np.round(array, decimals)


def _runs(labels: np.ndarray) -> list[tuple[bool, int]]:
    """(is it binary, how many columns) for each part of the columns: runs of 0/1 columns, single others."""
    width = labels.shape[1]
    if width <= LONGEST_RUN and np.array_equal(labels != 0, labels):  # all at once is faster than by columns
        return [(True, width)] if width else []
    runs: list[tuple[bool, int]] = []
    for binary in ((labels == 0) | (labels == 1)).all(axis=0).tolist():
        if binary and runs and runs[-1][0] and runs[-1][1] < LONGEST_RUN:
            runs[-1] = (True, runs[-1][1] + 1)
        else:
            runs.append((binary, 1))
    return runs


def _rank_numbers(values: np.ndarray) -> tuple[np.ndarray, int]:
    if values.dtype.kind == "i" and len(values):
        low, high = int(values.min()), int(values.max())
        if ranking.table_pays(high - low, len(values)):
            return values - low, high - low + 1
    distinct, ranks = np.unique(values, return_inverse=True)
    return ranks.reshape(-1).astype(np.int64, copy=False), len(distinct)


def _rank_values(values: np.ndarray) -> tuple[np.ndarray, int]:
    if values.dtype != object:
        return _rank_numbers(values)
    try:
        distinct = sorted(set(values.tolist()), key=lambda value: (type(value).__name__, value))
    except TypeError as error:
        raise DataError(f"labels must be hashable and ordered within their type: {error}") from None
    number = {value: rank for rank, value in enumerate(distinct)}
    return np.array([number[value] for value in values.tolist()], dtype=np.int64), len(distinct)
