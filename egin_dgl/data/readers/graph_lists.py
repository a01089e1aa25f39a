"""Lists of graphs of other libraries → GraphArrays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.ragged import offsets_of
from egin_dgl.data.readers.columns import (
    ALL_COLUMNS,
    ColumnSelection,
    object_array,
    parse_column,
    parse_label,
    stack_columns,
)
from egin_dgl.data.readers.graph_objects import GraphObject, kind_of, read_graph, to_numpy
from egin_dgl.errors import DataError


def graphs_to_arrays(
    graphs: Sequence,
    labels: object = None,
    columns: tuple[ColumnSelection, ColumnSelection] = ALL_COLUMNS,
    ids: Sequence | None = None,
    molecules: str = "tu",
) -> GraphArrays:
    """Arrays of graphs of one library, or of SMILES strings; every DataError names graph and column.

    Without `labels`, the classes are those of (graph, class) pairs, as DGL's datasets give them, or PyG's ``y``.
    """
    graphs = list(graphs)
    if not graphs:
        raise DataError("there are no graphs")
    if labels is None and all(isinstance(graph, tuple) and len(graph) == 2 for graph in graphs):
        labels, graphs = [label for _, label in graphs], [graph for graph, _ in graphs]
    names = tuple(map(str, range(len(graphs)) if ids is None else ids))
    if len(names) != len(graphs):
        raise DataError(f"there are {len(graphs)} graphs and {len(names)} ids")
    first, read = kind_of(graphs[0]), []
    for name, graph in zip(names, graphs, strict=True):
        kind = kind_of(graph)
        if kind is None:
            raise DataError(
                f"graph {name} is a {type(graph).__name__}, where a DGLGraph, a networkx graph, PyG's Data or a "
                "SMILES string is needed"
            )
        if kind != first:
            raise DataError(
                f"graph {name} is a {kind}, where a {first} is needed; pass graphs of one library"
            )
        try:
            one = read_graph(graph, columns, molecules)
        except DataError as error:
            raise DataError(f"graph {name}: {error}") from None
        if one.nodes == 0:
            raise DataError(f"graph {name} has no nodes; leave it out")
        read.append(one)
    if labels is None and all(one.label is not None for one in read):
        labels = [one.label for one in read]
    arrays = concat_graphs(read, names, columns)
    if labels is not None:
        arrays = replace(arrays, graph_labels=_parse_classes(labels, names))
    return replace(arrays, smiles=tuple(graphs)) if first == "SMILES string" else arrays


def concat_graphs(
    graphs: Sequence[GraphObject],
    names: tuple[str, ...],
    columns: tuple[ColumnSelection, ColumnSelection] = ALL_COLUMNS,
) -> GraphArrays:
    """Arrays of graphs, which may be none."""
    starts = offsets_of(np.array([graph.nodes for graph in graphs])).tolist()
    none = np.zeros(0, dtype=np.int64)
    return GraphArrays(
        node_graph=np.repeat(np.arange(len(graphs)), np.diff(starts)),
        src=np.concatenate([none, *(graph.src + starts[i] for i, graph in enumerate(graphs))]),
        dst=np.concatenate([none, *(graph.dst + starts[i] for i, graph in enumerate(graphs))]),
        graphs=len(graphs),
        nodes=_concat_columns([(g.nodes, g.node_columns) for g in graphs], names, columns[0], "node"),
        edges=_concat_columns([(len(g.src), g.edge_columns) for g in graphs], names, columns[1], "edge"),
        ids=names,
    )


def _concat_columns(
    graphs: list[tuple[int, Mapping[str, Any]]], names: Sequence[str], selection: ColumnSelection, owner: str
) -> RawColumns:
    """Columns of all graphs, which must have the same ones; graphs without rows may have none."""
    starts = offsets_of(np.array([rows for rows, _ in graphs]))
    filled = [(name, columns) for name, (rows, columns) in zip(names, graphs, strict=True) if rows]
    wanted = selection.names
    if wanted is None:
        wanted = list(dict.fromkeys(field for _, columns in filled for field in columns))

    def locate(row: int) -> str:
        graph = int(np.searchsorted(starts, row, side="right")) - 1
        return f"graph {names[graph]}, {owner} {row - starts[graph]}"

    parsed: dict[str, tuple[str, np.ndarray]] = {}
    for field in wanted if filled else ():
        parts = []
        for name, columns in filled:
            if field not in columns:
                found = ", ".join(map(repr, columns)) or "none"
                raise DataError(f"graph {name} has no {owner} column {field!r}, only {found}")
            parts.append(columns[field])
        for name, values in _split_columns(field, parts, [name for name, _ in filled], owner).items():
            if name in parsed:
                raise DataError(f"two {owner} columns are called {name!r}; rename one")
            parsed[name] = parse_column(values, selection.kind(field), locate, f"{owner} column {name!r}")
    return stack_columns(int(starts[-1]), parsed)


def _split_columns(field: str, parts: list, names: list[str], owner: str) -> dict[str, Any]:
    """One field of all graphs; a field of several columns as field0, field1, …"""
    if not all(isinstance(part, np.ndarray) for part in parts):
        return {field: [value for part in parts for value in part]}
    shapes = [part.shape[1:] for part in parts]
    if odd := next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None):
        raise DataError(
            f"graph {names[odd]}: {owner} column {field!r} has the shape {list(parts[odd].shape)}, "
            f"graph {names[0]} has {list(parts[0].shape)}"
        )
    values = np.concatenate(parts)
    if values.ndim > 2:
        raise DataError(f"{owner} column {field!r} has {values.ndim} dimensions; it must have one or two")
    if values.ndim == 1 or values.shape[1] == 1:
        return {field: values.reshape(-1)}
    return {f"{field}{i}": column for i, column in enumerate(values.T)}


def _parse_classes(labels: object, names: Sequence[str]) -> np.ndarray:
    """One class for each graph: integers, strings, or None where unknown; (G,) objects."""
    labels = to_numpy(labels)
    if isinstance(labels, (str, Mapping)) or getattr(labels, "ndim", 1) == 0:
        raise DataError(f"labels must be a list, one class for each graph, got {type(labels).__name__}")
    try:
        values = [_parse_class(label) for label in labels]  # type: ignore[attr-defined]
    except TypeError:
        raise DataError(
            f"labels must be a list, one class for each graph, got {type(labels).__name__}"
        ) from None
    if len(values) != len(names):
        raise DataError(f"there are {len(names)} graphs and {len(values)} labels")
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, (int, str, type(None))):
            shown = (
                value
                if isinstance(value, (float, list, tuple, dict, set))
                else f"of type {type(value).__name__}"
            )
            raise DataError(
                f"graph {name} has the label {shown}; each graph has one class here, an integer or a string "
                "(single-label classification)"
            )
    return object_array(values)


def _parse_class(label: object) -> object:
    """A class as an integer or a string where possible; [3] is 3, and a member of an Enum is its name."""
    label = to_numpy(label)
    if isinstance(label, Enum):
        return label.name
    if isinstance(label, bytes):
        return label.decode(errors="backslashreplace")
    if isinstance(label, (np.ndarray, np.generic)):
        label = label.tolist()
    if isinstance(label, (list, tuple)) and len(label) == 1:
        label = label[0]
    if isinstance(label, float) and not label.is_integer():
        return label
    return parse_label(label) if isinstance(label, (bool, int, float, str)) else label
