"""Columns of values → labels and attributes: strings, integers and booleans are labels, real numbers attributes."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np
import torch

from egin_dgl.data.arrays import RawColumns
from egin_dgl.errors import ConfigError, DataError

Locate = Callable[[int], str]  # the place of a row, for messages: "graph 3, node 7" or "nodes.csv, line 12"
MAX_FLOAT = np.finfo(np.float32).max  # features are float32; larger numbers would become infinite
MAX_EXACT = 2**53  # float64 represents every integer up to here
NUMBER = re.compile(
    r"[-+]?(\d+\.?\d*(e[-+]?\d+)?|\.\d+(e[-+]?\d+)?|nan|inf(inity)?)", re.IGNORECASE | re.ASCII
)


@dataclass(frozen=True)
class ColumnSelection:
    """Columns of nodes or edges to use as labels and as attributes. If both are None: all columns, by their type."""

    labels: Sequence[str] | None = None
    attributes: Sequence[str] | None = None
    owner: str = "node"

    def __post_init__(self) -> None:
        for option in ("labels", "attributes"):
            value = getattr(self, option)
            names = [value] if isinstance(value, str) else value
            if not isinstance(names, (Sequence, NoneType)) or not all(
                isinstance(n, str) for n in names or ()
            ):
                raise ConfigError(f"{self.owner}_{option} must be a list of column names, got {value!r}")
            object.__setattr__(self, option, names and list(names))
        names = self.names or []
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(
                f"{self.owner} column {twice[0]!r} is selected twice; select it as a label or as an attribute"
            )

    @property
    def names(self) -> list[str] | None:
        """All selected columns; None selects every column."""
        if self.labels is None and self.attributes is None:
            return None
        return [*(self.labels or ()), *(self.attributes or ())]

    def kind(self, name: str) -> str | None:
        """ "label" or "attribute"; None if the type of the column decides."""
        if self.names is None:
            return None
        return "attribute" if name in (self.attributes or ()) else "label"


Selections = tuple[ColumnSelection, ColumnSelection]  # of nodes and of edges


def select_columns(
    node_labels: Sequence[str] | None = None,
    node_attributes: Sequence[str] | None = None,
    edge_labels: Sequence[str] | None = None,
    edge_attributes: Sequence[str] | None = None,
) -> Selections:
    """Each argument is None, a name or a list of names."""
    return ColumnSelection(node_labels, node_attributes), ColumnSelection(
        edge_labels, edge_attributes, "edge"
    )


def stack_columns(rows: int, columns: Mapping[str, tuple[str, np.ndarray]]) -> RawColumns:
    """RawColumns of (kind, values) by name."""

    def stack(kind: str) -> tuple[np.ndarray | None, tuple[str, ...]]:
        found = {name: values for name, (own, values) in columns.items() if own == kind}
        if not found:
            return None, ()
        mixed = any(values.dtype == object for values in found.values())
        return np.stack([v.astype(object) if mixed else v for v in found.values()], axis=1), tuple(found)

    (labels, label_names), (attributes, attribute_names) = stack("label"), stack("attribute")
    return RawColumns(rows, labels, attributes, label_names, attribute_names)


def parse_column(
    values: Sequence | np.ndarray, kind: str | None, locate: Locate, column: str
) -> tuple[str, np.ndarray]:
    """("label", integers or objects) or ("attribute", float64); `kind` None decides by the type of the values."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
        kind = kind or ("attribute" if values.dtype.kind == "f" else "label")
        if kind == "label" and values.dtype.kind in "iu" and values.dtype != np.uint64:
            return kind, values.astype(np.int64)
        if kind == "attribute" and values.dtype.kind in "fb":
            return kind, _finite(values, locate, column)
    items = [value.item() if isinstance(value, np.generic) else value for value in values]

    def fail(wrong: Callable[[object], bool], problem: str) -> None:
        row = next((row for row, item in enumerate(items) if wrong(item)), None)
        if row is not None:
            shown = repr(items[row])
            shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
            raise DataError(f"{locate(row)}: {column} holds {shown}{problem}")

    fail(lambda item: type(item) not in (bool, int, float, str), ", expected a number or a string")
    kinds = {type(item) for item in items}
    if kind is None and float in kinds:
        if not kinds <= {int, float}:
            fail(lambda item: not isinstance(item, float), " among real numbers; use one type")
        kind = "attribute"
    if kind == "attribute":
        fail(lambda item: isinstance(item, str), ", expected a number")
        fail(
            lambda item: isinstance(item, int) and abs(item) > MAX_EXACT,
            ", an integer too large for an attribute; use it as a label",
        )
        return kind, _finite(items, locate, column)
    fail(lambda item: isinstance(item, float) and not np.isfinite(item), ", which is not a label")
    labels = [parse_label(item) for item in items]
    if all(isinstance(label, int) and -(2**63) <= label < 2**63 for label in labels):
        return "label", np.array(labels, dtype=np.int64)
    return "label", object_array(labels)


def _finite(values: Sequence | np.ndarray, locate: Locate, column: str) -> np.ndarray:
    """Attributes (rows,) float64 that are finite as float32."""
    numbers = np.asarray(values, dtype=np.float64)
    wrong = ~(np.abs(numbers) <= MAX_FLOAT)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"{locate(row)}: {column} holds {numbers[row]}, which is not a finite number")
    return numbers


def parse_label(value: object) -> int | str:
    """Integral numbers as integers, everything else as a string ("True", "False" for booleans)."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else str(value)


def to_numpy(value: Any) -> Any:
    """A tensor as an array, other values as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    tensor = value.detach().cpu()
    if tensor.is_floating_point() and tensor.itemsize < 4:
        tensor = tensor.float()  # numpy has no bfloat16; float32 represents it exactly
    try:
        return tensor.numpy()
    except (TypeError, RuntimeError, ValueError):
        kind = f"{tensor.layout} tensor of {tensor.dtype}".replace("torch.", "")
        raise DataError(f"a {kind} cannot be read; pass a dense tensor of numbers") from None


def object_array(values: Iterable) -> np.ndarray:
    """(n,) objects; numpy would make a matrix of a list of tuples."""
    values = list(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
