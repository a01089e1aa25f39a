"""Targets of graphs, encoded by task.

A reader gives each graph a row of raw targets: integers, real numbers, strings, or None where a target is missing. The task
decides what they mean: one column of classes (multiclass), columns of 0 and 1 (multilabel) or of real numbers (regression).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from egin_dgl.data.arrays import GraphArrays, unique_labels
from egin_dgl.data.readers.columns import object_array
from egin_dgl.errors import DataError, list_first
from egin_dgl.options import TaskOption

if TYPE_CHECKING:
    from egin_dgl.data.dataset import DatasetInfo

MANY_CLASSES = 20  # more different integers than this could be classes or values
BOOLEANS = {
    text: number
    for number, word in enumerate(("false", "true"))
    for text in (word, word.title(), word.upper())
}
BINARY = ("0 and 1", "True and False")  # kinds of columns


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


def encode_targets(
    arrays: GraphArrays, task: TaskOption = "auto", like: EncodedTargets | None = None
) -> EncodedTargets:
    """The labels of graphs, and the task if it is "auto".

    Args:
        arrays: with raw targets, or without any.
        task: "auto" decides from the targets, see `decide_task`.
        like: of a training set, to encode new graphs as it was encoded; a value that has no meaning there is unknown: the label
            -1 of a class, NaN of a label or number.
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
    labels = _numbers(arrays, task, invalid_is_missing=like is not None)
    return EncodedTargets(labels, task, (), names_of_targets)


def _unknown(graphs: int, like: EncodedTargets) -> EncodedTargets:
    """Labels of graphs without targets."""
    if like.task == "multiclass":
        labels = np.full(graphs, -1, dtype=np.int64)
    else:
        labels = np.full((graphs, len(like.target_names)), np.nan)
    return EncodedTargets(labels, like.task, like.class_names, like.target_names)


def decide_task(arrays: GraphArrays) -> Literal["multiclass", "multilabel", "regression"]:
    """The task that raw targets stand for; a `DataError` names the choices where they could stand for several.

    One column of text or of at most 20 different integers is multiclass, columns of 0 and 1, or of True and False, are
    multilabel, columns of real numbers are regression.
    """
    assert arrays.targets is not None
    known = [[value for value in column if value is not None] for column in arrays.targets.T]
    kinds = {
        name: kind_of_column(values)
        for name, values in zip(arrays.target_names, known, strict=True)
        if values
    }
    found = set(kinds.values())
    if arrays.targets.shape[1] == 1:
        (name, kind), column = next(iter(kinds.items())), arrays.targets[:, 0].tolist()
        if kind in ("text", "few integers", *BINARY):
            return "multiclass"
        if kind == "real numbers":
            return "regression"
        if kind == "many integers":
            raise DataError(
                f"the target {name!r} holds {len(set(known[0]))} different integers: task=multiclass takes each as a class, "
                "task=regression as a number"
            )
        row = next(row for row, value in enumerate(column) if isinstance(value, str))
        raise DataError(
            f"{arrays.locate(row)}: the target {name!r} holds {column[row]!r:.40} among numbers: correct it or leave the cell "
            "empty for task=regression; task=multiclass takes each value as a class"
        )
    if found <= set(BINARY):
        return "multilabel"
    if found <= {"real numbers", "many integers"}:
        return "regression"
    listed = list_first([f"{name!r} {kind}" for name, kind in kinds.items()], ", ")
    if found & {"text", "text and numbers", "True and False"}:
        hint = "task=multilabel is for columns of 0 and 1, task=regression for numbers, task=multiclass for one column"
    else:
        hint = "task=regression takes all as numbers"
    raise DataError(f"the targets hold {listed}: {hint}; dataset.target chooses the columns")


def kind_of_column(values: Sequence[int | float | str]) -> str:
    """What the known values of a target are."""
    distinct = set(values)
    texts = {value for value in distinct if isinstance(value, str)}
    real = any(isinstance(value, float) for value in distinct)
    many = len(distinct - texts) > MANY_CLASSES
    if texts and (real or many):
        return "text and numbers"
    if texts:
        return "True and False" if texts <= BOOLEANS.keys() and texts == distinct else "text"
    if real:
        return "real numbers"
    return "0 and 1" if distinct <= {0, 1} else "many integers" if many else "few integers"


def _numbers(arrays: GraphArrays, task: str, invalid_is_missing: bool) -> np.ndarray:
    """Targets as (G, T) float64, NaN where missing; one that the task has no meaning for is missing, or a `DataError`."""
    assert arrays.targets is not None
    values = arrays.targets.copy()
    if task == "multilabel":
        values = np.frompyfunc(lambda value: BOOLEANS.get(value, value), 1, 1)(values)
    needed = "0 or 1" if task == "multilabel" else "a number"
    for (graph, column), value in np.ndenumerate(values):
        valid = value is None or (value in (0, 1) if task == "multilabel" else not isinstance(value, str))
        if not valid and invalid_is_missing:
            values[graph, column] = None
        elif not valid:
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
            f"task=multiclass is for one target, here are {arrays.targets.shape[1]}: use task=multilabel for columns of 0 and 1, "
            "task=regression for numbers"
        )
    column = object_array(str(v) if isinstance(v, float) else v for v in arrays.targets[:, 0])
    known = np.array([value is not None for value in column.tolist()], dtype=bool)
    values, index = unique_labels(column[known])
    class_names = like.class_names if like else tuple(dict.fromkeys(map(str, values)))
    if like is None and len(class_names) > max(MANY_CLASSES, known.sum() / 2):
        raise DataError(
            f"the target {arrays.target_names[0]!r} has {len(class_names)} different values in {known.sum()} graphs, too many for "
            "classes: use task=regression for numbers, or another column"
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
