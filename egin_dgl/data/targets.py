"""Targets of graphs: read from a table, objects or tensors, and encoded by task.

A reader gives each graph a row of raw targets: integers, real numbers, strings, or None where a target is missing. The task
decides what they mean: one column of classes (multiclass), columns of 0 and 1 (multilabel) or of real numbers (regression).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import torch
from pydantic import Field

from egin_dgl.data.arrays import GraphArrays, unique_labels
from egin_dgl.data.readers.columns import MAX_EXACT, NUMBER, object_array, to_numpy
from egin_dgl.errors import ConfigError, DataError, list_first
from egin_dgl.options import TaskOption

if TYPE_CHECKING:
    from egin_dgl.data.dataset import DatasetInfo
    from egin_dgl.data.readers.tables import Table  # it needs pandas

Target = str | Annotated[list[str], Field(min_length=1)]  # one column, or several

MISSING = ("", "nan", "na", "n/a", "null")  # case-insensitive
MANY_CLASSES = 20  # more different integers than this could be classes or values


@dataclass(frozen=True)
class EncodedTargets:
    """Labels as in `GraphDataset`, and their description as in `DatasetInfo`."""

    labels: np.ndarray  # (G,) int64, -1 where unknown; or (G, T) float64, NaN where missing
    task: Literal["multiclass", "multilabel", "regression"] = "multiclass"
    class_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()


def encoded_like(info: "DatasetInfo") -> EncodedTargets:
    """The description of a training set's targets, without labels."""
    return EncodedTargets(np.empty(0), info.task, info.class_names, info.target_names)


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


def encode_targets(
    arrays: GraphArrays, task: TaskOption = "auto", like: EncodedTargets | None = None
) -> EncodedTargets:
    """The labels of graphs, and the task if it is "auto".

    Args:
        arrays: with raw targets, or without any.
        task: "auto" decides from the targets, see `decide_task`.
        like: of a training set, to encode new graphs as it was encoded; other classes than its own get the label -1.
    """
    if arrays.targets is None:
        names = like or EncodedTargets(np.empty(0))
        return _unknown(arrays.graphs, names)
    if like is not None:
        task, names_of_targets = like.task, like.target_names
    else:
        names_of_targets = arrays.target_names
        task = arrays.task if task == "auto" else task
        task = decide_task(arrays) if task == "auto" else task
    if arrays.targets.shape[1] != max(len(names_of_targets), 1):
        raise DataError(
            f"a graph has {arrays.targets.shape[1]} target(s), those of the training set have {len(names_of_targets)}"
        )
    if task == "multiclass":
        return _encode_classes(arrays, like)
    return EncodedTargets(_numbers(arrays, task), task, (), names_of_targets)


def _unknown(graphs: int, like: EncodedTargets) -> EncodedTargets:
    """Labels of graphs without targets."""
    if like.task == "multiclass":
        labels = np.full(graphs, -1, dtype=np.int64)
    else:
        labels = np.full((graphs, len(like.target_names)), np.nan)
    return EncodedTargets(labels, like.task, like.class_names, like.target_names)


def decide_task(arrays: GraphArrays) -> Literal["multiclass", "multilabel", "regression"]:
    """The task that raw targets stand for; a `DataError` names the choices where they could stand for several.

    One column of strings or of at most 20 different integers is multiclass, columns of 0 and 1 are multilabel, columns of
    real numbers are regression.
    """
    assert arrays.targets is not None
    kinds = {
        name: kind_of_column([value for value in column if value is not None])
        for name, column in zip(arrays.target_names, arrays.targets.T, strict=True)
    }
    found = set(kinds.values())
    name, kind = next(iter(kinds.items()))
    if len(kinds) == 1:
        if kind in ("classes", "0/1"):
            return "multiclass"
        if kind == "real numbers":
            return "regression"
        hint = "task=multiclass takes each as a class, task=regression as a number"
        hint = "task=multiclass takes each as a class" if kind == "text and numbers" else hint
        raise DataError(f"the target {name!r} holds {kind}: {hint}")
    if found == {"0/1"}:
        return "multilabel"
    if found <= {"real numbers", "integers of many values"}:
        return "regression"
    listed = list_first([f"{name!r} {kind}" for name, kind in kinds.items()], ", ")
    numeric = not found & {"classes", "text and numbers"}
    hint = "task=regression takes all as numbers, or" if numeric else "several targets must be numbers:"
    raise DataError(f"the targets are of several kinds ({listed}); {hint} choose others with dataset.target")


def kind_of_column(values: Sequence[int | float | str]) -> str:
    """What the known values of a target are."""
    texts = any(isinstance(value, str) for value in values)
    if texts and any(isinstance(value, float) for value in values):
        return "text and numbers"
    distinct = set(values)
    if texts:
        return "classes"
    if any(isinstance(value, float) for value in distinct):
        return "real numbers"
    if distinct <= {0, 1}:
        return "0/1"
    return "classes" if len(distinct) <= MANY_CLASSES else "integers of many values"


def _numbers(arrays: GraphArrays, task: str) -> np.ndarray:
    """Targets as (G, T) float64, NaN where missing; a `DataError` for one that the task has no meaning for."""
    assert arrays.targets is not None
    values = arrays.targets
    needed = "0 or 1" if task == "multilabel" else "a number"
    for (graph, column), value in np.ndenumerate(values):
        valid = value is None or (value in (0, 1) if task == "multilabel" else not isinstance(value, str))
        if not valid:
            name = arrays.target_names[column]
            raise DataError(
                f"{arrays.locate(int(graph))}: the target {name!r} holds {value!r:.40}, where task={task} needs {needed}"
            )
    return np.where(is_missing(values), np.nan, values).astype(np.float64)


def _encode_classes(arrays: GraphArrays, like: EncodedTargets | None) -> EncodedTargets:
    """Classes numbered in the order of their values, or as in a training set."""
    assert arrays.targets is not None
    if arrays.targets.shape[1] != 1:
        raise DataError(
            f"task=multiclass is for one target, here are {arrays.targets.shape[1]}; use task=multilabel for columns of 0 and 1"
        )
    column = object_array(str(v) if isinstance(v, float) else v for v in arrays.targets[:, 0])
    known = np.array([value is not None for value in column.tolist()], dtype=bool)
    values, index = unique_labels(column[known])
    class_names = like.class_names if like else tuple(dict.fromkeys(map(str, values)))
    if like is None and len(class_names) > max(MANY_CLASSES, known.sum() / 2):
        raise DataError(
            f"{arrays.target_names[0]!r} has {len(class_names)} different values in {known.sum()} graphs, which are no classes"
        )
    number = {name: i for i, name in enumerate(class_names)}
    labels = np.full(arrays.graphs, -1, dtype=np.int64)
    labels[known] = np.array([number.get(str(value), -1) for value in values], dtype=np.int64)[index]
    return EncodedTargets(labels, "multiclass", class_names, arrays.target_names)


def is_missing(targets: np.ndarray) -> np.ndarray:
    """Where raw targets are None."""
    return np.asarray(np.frompyfunc(lambda value: value is None, 1, 1)(targets), dtype=bool)


def drop_unlabelled(arrays: GraphArrays) -> GraphArrays:
    """Only the graphs with at least one target; the others are counted in a warning."""
    if arrays.targets is None:
        return arrays
    labelled = np.logical_not(is_missing(arrays.targets).all(axis=1))
    if labelled.all():
        return arrays
    if not labelled.any():
        raise DataError(f"no graph has a value of {', '.join(map(repr, arrays.target_names))}")
    places = [arrays.locate(graph) for graph in np.flatnonzero(~labelled).tolist()]
    return arrays.take(labelled).with_warning(
        f"{len(places)} graph(s) without a label left out: {list_first(places, ', ')}"
    )
