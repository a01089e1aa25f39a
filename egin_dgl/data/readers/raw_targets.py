"""Raw targets of graphs, read from a table, objects or tensors: integers, real numbers or strings, None where missing."""

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from pydantic import Field

from egin_dgl.data.readers.columns import MAX_EXACT, NUMBER, object_array, to_numpy
from egin_dgl.errors import ConfigError, DataError

if TYPE_CHECKING:
    from egin_dgl.data.readers.tables import Table  # it needs pandas

Target = str | Annotated[list[str], Field(min_length=1)]  # one column, or several

MISSING = ("", "nan", "na", "n/a", "null")  # case-insensitive


def read_targets(table: "Table", target: Target, required: bool) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """The target columns of a table, (rows, T) objects, and their names.

    None if none of the columns exists and they are not required.
    """
    names = (target,) if isinstance(target, str) else tuple(target)
    if len(set(names)) < len(names):
        raise ConfigError(f"dataset.target lists a column twice: {', '.join(names)}")
    found = names if required else tuple(name for name in names if name in table.columns)
    if not found:
        return None, names
    columns = [object_array(map(parse_target, table.column(name, "dataset.target"))) for name in found]
    values = np.full((len(columns[0]), len(names)), None, dtype=object)
    for name, column in zip(found, columns, strict=True):
        values[:, names.index(name)] = column
    return values, names


def parse_target(text: str) -> int | float | str | None:
    """A cell as an integer, a real number or a string; None where missing. pandas writes 1 as 1.0 in a column with gaps."""
    if text.lower() in MISSING:
        return None
    if NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        if not number.is_integer():
            return number
        return int(number) if abs(number) < MAX_EXACT else text
    return text


def find_tensor(
    tensors: Mapping[str, torch.Tensor], target: str | None, required: bool
) -> torch.Tensor | None:
    """The tensor `target`, or the only one; None if there is no such tensor and it is not required."""
    if target is None and len(tensors) == 1:
        return next(iter(tensors.values()))
    if target is not None and target in tensors:
        return tensors[target]
    if not required:
        return None
    wanted = "single tensor of targets" if target is None else f"tensor {target!r}"
    raise DataError(
        f"it has no {wanted}, only {', '.join(tensors) or 'none'}; select it with dataset.target=NAME, or save it with "
        "dgl.save_graphs(path, graphs, {'label': tensor})"
    )


def targets_of_objects(labels: object, names: Sequence[str]) -> np.ndarray:
    """A row of targets for each graph, (G, T) objects: of classes, numbers, or rows of numbers."""
    labels = to_numpy(labels)
    if (
        isinstance(labels, (str, Mapping))
        or not isinstance(labels, Iterable)
        or getattr(labels, "ndim", 1) == 0
    ):
        raise DataError(
            f"labels must be a list, one class, number or row of numbers for each graph, got {type(labels).__name__}"
        )
    rows = [_row_of_object(label) for label in labels]
    if len(rows) != len(names):
        raise DataError(f"there are {len(names)} graphs and {len(rows)} labels")
    # A missing row is as wide as the others.
    width = max((len(row) for row in rows if row is not None), default=1)
    values = np.full((len(rows), width), None, dtype=object)
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        if row is None:
            continue
        if len(row) != width:
            raise DataError(f"graph {name} has {len(row)} target(s), another graph has {width}")
        if wrong := [value for value in row if not isinstance(value, (int, float, str, type(None)))]:
            raise DataError(
                f"graph {name} has the label {wrong[0]!r:.60}; a label is an integer, a real number or a string"
            )
        values[number] = row
    return values


def all_classes(targets: np.ndarray) -> bool:
    """Whether every known target is an integer or a string."""
    return all(isinstance(value, (int, str, type(None))) for value in targets.flat)


def _row_of_object(label: object) -> list | None:
    """The targets of one graph; None where all are missing."""
    label = to_numpy(label)
    if isinstance(label, (np.ndarray, np.generic)):
        label = label.tolist()
    if isinstance(label, (list, tuple)):
        while len(label) == 1 and isinstance(label[0], (list, tuple)):  # PyG's y is (1, T)
            label = label[0]
        return [_value_of_object(value) for value in label]
    value = _value_of_object(label)
    return None if value is None else [value]


def _value_of_object(value: object) -> object:
    """An integer, a real number or a string; NaN is missing, booleans and members of an Enum are their names."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return None if math.isnan(value) else int(value) if value.is_integer() else value
    return value
