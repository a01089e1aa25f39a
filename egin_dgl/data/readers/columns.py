"""Columns of values of any kind → labels and attributes: words, whole numbers and truth values label, reals measure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from egin_dgl.data.arrays import RawColumns
from egin_dgl.errors import ConfigError, DataError

Where = Callable[[int], str]  # the place of a row, for messages: "graph 3, node 7" or "nodes.csv, line 12"
LARGEST_REAL = np.finfo(np.float32).max  # features are float32: what overflows there is infinite
NUMBER = re.compile(
    r"[-+]?(\d+\.?\d*(e[-+]?\d+)?|\.\d+(e[-+]?\d+)?|nan|inf(inity)?)", re.IGNORECASE | re.ASCII
)
EXACT = 2**53  # up to here a float64 holds every integer


@dataclass(frozen=True)
class ColumnSelection:
    """Which columns of nodes or edges are used, by name. None and None: all of them, each by its kind.

    Where one is given, only what is named is used, and as is said.
    """

    labels: Sequence[str] | None = None
    attributes: Sequence[str] | None = None

    @classmethod
    def of(cls, labels: object, attributes: object, what: str) -> "ColumnSelection":
        """A name alone stands for a list of one."""
        chosen = cls(
            *(
                _names(value, f"{what}_{kind}")
                for value, kind in ((labels, "labels"), (attributes, "attributes"))
            )
        )
        named = chosen.names or []
        if twice := sorted({name for name in named if named.count(name) > 1}):
            raise ConfigError(
                f"{what} column {twice[0]!r} is named twice; give it as a label or as an attribute"
            )
        return chosen

    @property
    def names(self) -> list[str] | None:
        """All that are named; None where that is left to the data."""
        if self.labels is None and self.attributes is None:
            return None
        return [*(self.labels or ()), *(self.attributes or ())]

    def kind(self, name: str) -> str | None:
        if self.names is None:
            return None
        return "attribute" if name in (self.attributes or ()) else "label"

    def read(self, columns: Mapping[str, object], rows: int, where: Where, what: str) -> RawColumns:
        """The columns as labels and attributes. A column is a list, or an array (rows,) or (rows, k) of k columns."""
        labels: dict[str, np.ndarray] = {}
        attributes: dict[str, np.ndarray] = {}
        for field, values in columns.items():
            for name, column in _single(field, values, what).items():
                if name in labels or name in attributes:
                    raise DataError(f"two {what} columns are called {name!r}; rename one")
                kind, array = as_column(column, self.kind(field), where, f"{what} column {name!r}")
                (attributes if kind == "attribute" else labels)[name] = array
        return RawColumns(
            rows,
            stacked(labels.values()),
            stacked(attributes.values()),
            tuple(labels),
            tuple(attributes),
        )


def as_column(
    values: Sequence | np.ndarray, kind: str | None, where: Where, what: str
) -> tuple[str, np.ndarray]:
    """("label", integers or objects) or ("attribute", float64), by the values or as `kind` says."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
        kind = kind or ("attribute" if values.dtype.kind == "f" else "label")
        if kind == "attribute":
            return kind, finite(values, where, what)
        if values.dtype.kind in "iu" and values.dtype != np.uint64:
            return kind, values.astype(np.int64)
    given = [value.item() if isinstance(value, np.generic) else value for value in values]
    kinds = {type(value) for value in given}
    if other := kinds - {bool, int, float, str}:
        row = next(row for row, value in enumerate(given) if type(value) in other)
        raise DataError(
            f"{where(row)}: {what} holds {_shown(given[row])}, where a number or a word is needed"
        )
    if kind is None and float in kinds:
        if not kinds <= {int, float}:
            row = next(row for row, value in enumerate(given) if not isinstance(value, float))
            raise DataError(
                f"{where(row)}: {what} holds {_shown(given[row])} among real numbers; use one kind"
            )
        kind = "attribute"
    if kind == "attribute":
        if str in kinds:
            row = next(row for row, value in enumerate(given) if isinstance(value, str))
            raise DataError(f"{where(row)}: {what} holds {_shown(given[row])}, where a number is needed")
        return kind, finite(given, where, what)
    return "label", labels_of(given, where, what)


def finite(values: Sequence | np.ndarray, where: Where, what: str) -> np.ndarray:
    """Attributes: (rows,) float64, each of them finite as float32 too, and no integer changed on the way."""
    if not (isinstance(values, np.ndarray) and values.dtype.kind in "fb"):
        for row, value in enumerate(values):
            if isinstance(value, (int, np.integer)) and not -EXACT <= value <= EXACT:
                raise DataError(
                    f"{where(row)}: {what} holds {value}, an integer too large to be an attribute; make it a label"
                )
    numbers = np.asarray(values, dtype=np.float64)
    wrong = ~(np.abs(numbers) <= LARGEST_REAL)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"{where(row)}: {what} holds {numbers[row]}, which is not a finite number")
    return numbers


def labels_of(values: Iterable, where: Where, what: str) -> np.ndarray:
    """(rows,) int64 where all labels are such numbers, else objects: integers and strings."""
    labels: list[int | str] = []
    for row, value in enumerate(values):
        if isinstance(value, float) and not np.isfinite(value):
            raise DataError(f"{where(row)}: {what} holds {value}, which is no label")
        labels.append(label_of(value))
    if all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in labels):
        return np.array(labels, dtype=np.int64)
    return objects(labels)


def label_of(value: object) -> int | str:
    """Whole numbers are integers however they are written; truth values are the words True and False."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else str(value)


def objects(values: Sequence) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def stacked(columns: Iterable[np.ndarray]) -> np.ndarray | None:
    """Columns side by side: (rows, k); None where there are none."""
    columns = list(columns)
    if not columns:
        return None
    if any(column.dtype == object for column in columns):
        columns = [column.astype(object) for column in columns]
    return np.stack(columns, axis=1)


def _single(field: str, values: object, what: str) -> dict[str, Sequence | np.ndarray]:
    """A field of several columns as those: field0, field1, …"""
    if not isinstance(values, np.ndarray):
        return {field: values}  # type: ignore[dict-item]
    if values.ndim > 2:
        raise DataError(
            f"{what} column {field!r} has {values.ndim} dimensions; give one number for each, or a row"
        )
    if values.ndim == 1 or values.shape[1] == 1:
        return {field: values.reshape(-1)}
    return {f"{field}{i}": column for i, column in enumerate(values.T)}


def _names(value: object, option: str) -> list[str] | None:
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    if not isinstance(value, Sequence) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"{option} must be a list of names of columns, got {value!r}")
    return list(value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
