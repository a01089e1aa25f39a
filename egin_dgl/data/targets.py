"""Targets of graphs: the class of each graph, read from a table, objects or tensors, checked and numbered."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch

from egin_dgl.data.arrays import GraphArrays, unique_labels
from egin_dgl.data.readers.columns import NUMBER, object_array, parse_label, to_numpy
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.options import wording

if TYPE_CHECKING:
    from egin_dgl.data.readers.tables import Table  # it needs pandas

MISSING = ("", "nan", "na", "n/a", "null")  # case-insensitive
MANY_CLASSES = 20  # above it, more classes than half the graphs are an error
SINGLE = "each graph has one class here (single-label classification)"

OneColumn = Annotated[str, wording(f"the name of one column, as {SINGLE}")]


def read_classes(table: "Table", target: str, required: bool) -> np.ndarray | None:
    """The classes in the column `target`, (rows,) objects; None if there is no such column and it is not required."""
    _check_name(target)
    if not required and target not in table.columns:
        return None
    return object_array(map(parse_class, table.column(target, "dataset.target")))


def _check_name(target: object) -> None:
    if not isinstance(target, str):
        raise ConfigError(f"dataset.target must be the name of one column, got {target}: {SINGLE}")


def parse_class(text: str) -> int | str | None:
    """A class as an integer or a string; None where missing. pandas writes 1 as 1.0 in a column with gaps."""
    if text.lower() in MISSING:
        return None
    if NUMBER.fullmatch(text) and (number := float(text)).is_integer() and abs(number) < 2**53:
        return int(number)
    return text


def check_classes(classes: np.ndarray, lines: np.ndarray, path: object, target: str) -> None:
    """Raise if classes are missing, numeric, or nearly all different."""
    missing = lines[[value is None for value in classes]].tolist()
    if missing:
        shown = f"line{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing[:5]))}"
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise DataError(f"{path}, {shown}{more}: no class in {target!r}; remove such rows for training")
    texts = [value for value in classes if isinstance(value, str)]
    if texts and all(NUMBER.fullmatch(text) for text in texts):
        line = lines[classes.tolist().index(texts[0])]
        raise DataError(
            f"{path}, line {line}: {target!r} holds {texts[0]}, a numeric target; {SINGLE}, so convert it to classes first"
        )
    count = len(set(classes))
    if count > max(MANY_CLASSES, len(classes) / 2):
        raise DataError(
            f"{path}: {target!r} has {count} different values in {len(classes)} rows, which is not a class column; {SINGLE}"
        )


def find_classes(
    tensors: Mapping[str, torch.Tensor], target: str | None, required: bool
) -> torch.Tensor | None:
    """The tensor `target`, or the only one; None if there is no such tensor and it is not required."""
    if target is None and len(tensors) == 1:
        return next(iter(tensors.values()))
    if target is not None:
        _check_name(target)
        if target in tensors:
            return tensors[target]
    if not required:
        return None
    wanted = "single tensor of classes" if target is None else f"classes {target!r}"
    raise DataError(
        f"it has no {wanted}, only {', '.join(tensors) or 'none'}; select it with dataset.target=NAME, or save it with "
        "dgl.save_graphs(path, graphs, {'label': tensor})"
    )


def classes_of_objects(labels: object, names: Sequence[str]) -> np.ndarray:
    """One class for each graph: integers, strings, or None where unknown; (G,) objects."""
    labels = to_numpy(labels)
    if (
        isinstance(labels, (str, Mapping))
        or not isinstance(labels, Iterable)
        or getattr(labels, "ndim", 1) == 0
    ):
        raise DataError(f"labels must be a list, one class for each graph, got {type(labels).__name__}")
    values = [_class_of_object(label) for label in labels]
    if len(values) != len(names):
        raise DataError(f"there are {len(names)} graphs and {len(values)} labels")
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, (int, str, type(None))):
            raise DataError(
                f"graph {name} has the label {value!r:.60}; each graph has one class here, an integer or a string "
                "(single-label classification)"
            )
    return object_array(values)


def _class_of_object(label: object) -> object:
    """A class as an integer or a string where possible; [3] is 3, and a member of an Enum is its name."""
    if isinstance(label, Enum):
        return label.name
    if isinstance(label, bytes):
        return label.decode(errors="backslashreplace")
    label = to_numpy(label)
    if isinstance(label, (np.ndarray, np.generic)):
        label = label.tolist()
    if isinstance(label, (list, tuple)) and len(label) == 1:
        label = label[0]
    is_label = isinstance(label, (bool, int, str)) or (isinstance(label, float) and label.is_integer())
    return parse_label(label) if is_label else label


def encode_classes(
    arrays: GraphArrays, class_names: Sequence[str] | None
) -> tuple[np.ndarray, Sequence[str]]:
    """The number of each graph's class (G,) int64, -1 where unknown, and the names; default: those that occur."""
    numbers = np.full(arrays.graphs, -1, dtype=np.int64)
    if arrays.graph_labels is None:
        return numbers, class_names or ()
    known = np.array([value is not None for value in arrays.graph_labels.tolist()], dtype=bool)
    if class_names is None and not known.all():
        first = arrays.ids[int(np.argmin(known))]
        raise DataError(f"{(~known).sum()} graph(s) have no label, first: {first}; remove them")
    values, index = unique_labels(arrays.graph_labels[known])
    class_names = list(dict.fromkeys(map(str, values))) if class_names is None else class_names
    number = {name: i for i, name in enumerate(class_names)}
    numbers[known] = np.array([number.get(str(value), -1) for value in values], dtype=np.int64)[index]
    return numbers, class_names
