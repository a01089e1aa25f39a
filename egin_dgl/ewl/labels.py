"""Labels of any type → ranks in the order of the labels."""

from collections.abc import Iterable, Sequence

import numpy as np

from egin_dgl.data.readers.columns import to_numpy
from egin_dgl.errors import DataError
from egin_dgl.ewl.ranking import combine, dense_rank

BINARY_DIGITS = 22  # exact in float32


def as_labels(values: object, count: int, owner: str, decimals: int | None = None) -> np.ndarray:
    """Labels of `count` nodes or edges: (count, p) numbers, rounded to `decimals`, or (count,) other values.

    `values` is None (all equal), a tensor, an array, or a sequence of numbers, strings, tuples or vectors. Numbers are
    compared by value; NaN is an error. `owner`, "node" or "edge", is for messages.
    """
    if values is None:
        return np.zeros((count, 0), dtype=np.int64)
    array = _as_array(values)
    if array.ndim not in (1, 2) or len(array) != count:
        raise DataError(f"{owner} labels must be one for each of {count} {owner}s, got shape {array.shape}")
    if array.dtype.kind not in "iubf":
        return array if array.ndim == 1 else _objects(map(tuple, array.tolist()))
    array = array[:, None] if array.ndim == 1 else array
    if array.dtype.kind == "f":
        if (nan := np.isnan(array)).any():
            row = int(np.flatnonzero(nan.any(axis=1))[0])
            raise DataError(f"{owner} {row} has the label NaN; fill or remove it first")
        return array if decimals is None else np.round(array, decimals)
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise DataError(f"{owner} labels must fit into 64-bit signed integers; pass them as strings")
    return array.astype(np.int64, copy=False)


def rank_labels(labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Ranks (n,) of labels in lexicographic order, and the number of different labels."""
    if labels.ndim == 1:
        return _rank_values(labels)
    if labels.shape[1] and np.array_equal(labels != 0, labels):
        # 0/1 columns, such as one-hot labels, are digits of binary numbers.
        blocks = np.split(labels, range(BINARY_DIGITS, labels.shape[1], BINARY_DIGITS), axis=1)
        weights = 2 ** np.arange(BINARY_DIGITS - 1, -1, -1).astype(labels.dtype)
        labels = np.stack([block @ weights[-block.shape[1] :] for block in blocks], axis=1)
    codes, bound = np.zeros(len(labels), dtype=np.int64), 1
    for column in labels.T:
        ranks, size = _rank_numbers(column)
        codes, bound = combine(codes, ranks, bound, size)
    return dense_rank(codes, bound)


def label_values(labels: np.ndarray, ranks: np.ndarray, count: int) -> np.ndarray:
    """The label of each rank, in order."""
    holder = np.empty(count, dtype=np.int64)
    holder[ranks] = np.arange(len(ranks))
    return labels[holder]


def concat_labels(parts: Sequence[np.ndarray], owner: str) -> np.ndarray:
    """Labels of all parts, which must be of one kind."""
    parts = [part for part in parts if len(part)] or parts[:1]
    kinds = {f"vectors of {part.shape[1]} numbers" if part.ndim == 2 else "names" for part in parts}
    if len(kinds) > 1:
        found = " and ".join(sorted(kinds))
        raise DataError(f"{owner} labels of different kinds cannot be compared: {found}")
    types = {part.dtype.kind for part in parts}
    if "O" in types or ("U" in types and len(types) > 1):
        parts = [part.astype(object) for part in parts]
    elif types == {"i", "f"} and any(np.abs(p).max(initial=0) > 2**53 for p in parts if p.dtype.kind == "i"):
        raise DataError(f"{owner} labels mix real numbers and integers beyond 2^53; use one type")
    return np.concatenate(parts)


def _as_array(values: object) -> np.ndarray:
    values = to_numpy(values)
    if isinstance(values, np.ndarray):
        return values if values.dtype != object else _as_array(values.tolist())
    if not isinstance(values, Iterable):
        raise DataError(f"labels must be a list, an array or a tensor, got {type(values).__name__}")
    values = list(values)
    kinds = {type(value) for value in values}
    if str in kinds and len(kinds) > 1:  # numpy would convert the 1 of [1, "1"] to "1"
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


def _rank_numbers(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Ranks of numbers; integers of a small range, such as a one-hot column, need no sort."""
    if len(values) and values.dtype.kind in "if" and np.abs(values).max() <= 2**53:
        numbers = values.astype(np.int64)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low <= 4 * len(values) + 1024 and np.array_equal(numbers, values):
            return numbers - low, high - low + 1
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
