"""Lists of graphs of DGL, networkx or PyG, of RDKit molecules or SMILES strings → GraphArrays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.ragged import offsets_of
from egin_dgl.data.readers.columns import (
    ColumnSelection,
    Selections,
    parse_column,
    select_columns,
    stack_columns,
)
from egin_dgl.data.readers.libraries import GraphObject, kind_of, read_graph
from egin_dgl.data.readers.raw_targets import all_classes, targets_of_objects
from egin_dgl.errors import DataError


def graphs_to_arrays(
    graphs: Sequence,
    labels: object = None,
    columns: Selections | None = None,
    ids: Sequence | None = None,
    molecules: str = "tu",
) -> GraphArrays:
    """Arrays of graphs of one library, or of SMILES strings; every DataError names graph and column.

    Without `labels`, the targets are those of (graph, label) pairs, as DGL's datasets give them, or PyG's ``y``.
    """
    graphs, columns = list(graphs), columns or select_columns()
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
        if kind is None or kind != first:
            needed = first or "DGLGraph, a networkx graph, PyG's Data or a SMILES string"
            raise DataError(
                f"graph {name} is a {kind or type(graph).__name__}, where a {needed} is needed; pass graphs of one library"
            )
        try:
            read.append(read_graph(graph, columns, molecules))
        except DataError as error:
            raise DataError(f"graph {name}: {error}") from None
        if read[-1].nodes == 0:
            raise DataError(f"graph {name} has no nodes; leave it out")
    if labels is None and all(one.label is not None for one in read):
        labels = [one.label for one in read]
    arrays = concat_graphs(read, names, columns)
    targets = None if labels is None else targets_of_objects(labels, names)
    width = 1 if targets is None else targets.shape[1]
    return replace(
        arrays,
        targets=targets,
        target_names=("label",) if width == 1 else tuple(f"label{i}" for i in range(width)),
        # Integers are classes here, as everywhere in torch; a table of text does not tell them from whole numbers.
        task="multiclass" if targets is not None and width == 1 and all_classes(targets) else "auto",
        smiles=tuple(graphs) if first == "SMILES string" else (),
    )


def concat_graphs(
    graphs: Sequence[GraphObject], names: tuple[str, ...], columns: Selections | None = None
) -> GraphArrays:
    """Arrays of graphs, which may be none."""
    nodes, edges = columns or select_columns()
    starts = offsets_of(np.array([graph.nodes for graph in graphs])).tolist()
    none = np.zeros(0, dtype=np.int64)
    return GraphArrays(
        node_graph=np.repeat(np.arange(len(graphs)), np.diff(starts)),
        src=np.concatenate([none, *(graph.src + starts[i] for i, graph in enumerate(graphs))]),
        dst=np.concatenate([none, *(graph.dst + starts[i] for i, graph in enumerate(graphs))]),
        graphs=len(graphs),
        nodes=_concat_columns([(g.nodes, g.node_columns) for g in graphs], names, nodes),
        edges=_concat_columns([(len(g.src), g.edge_columns) for g in graphs], names, edges),
        ids=names,
    )


def _concat_columns(
    graphs: list[tuple[int, Mapping[str, Any]]], names: Sequence[str], selection: ColumnSelection
) -> RawColumns:
    """Columns of all graphs, which must have the same ones; graphs without rows may have none."""
    starts, owner = offsets_of(np.array([rows for rows, _ in graphs])), selection.owner
    filled = [(name, columns) for name, (rows, columns) in zip(names, graphs, strict=True) if rows]
    wanted = selection.names
    if wanted is None:
        wanted = list(dict.fromkeys(field for _, columns in filled for field in columns))

    def locate(row: int) -> str:
        graph = int(np.searchsorted(starts, row, side="right")) - 1
        return f"graph {names[graph]}, {owner} {row - starts[graph]}"

    parsed: dict[str, tuple[str, np.ndarray]] = {}
    for field in wanted if filled else ():
        for name, columns in filled:
            if field not in columns:
                found = ", ".join(map(repr, columns)) or "none"
                raise DataError(f"graph {name} has no {owner} column {field!r}, only {found}")
        parts = [(name, columns[field]) for name, columns in filled]
        for name, values in _split_columns(field, parts, owner).items():
            if name in parsed:
                raise DataError(f"two {owner} columns are called {name!r}; rename one")
            parsed[name] = parse_column(values, selection.kind(field), locate, f"{owner} column {name!r}")
    return stack_columns(int(starts[-1]), parsed)


def _split_columns(field: str, parts: list[tuple[str, Any]], owner: str) -> dict[str, Any]:
    """One field of all graphs; a field of several columns as field0, field1, …"""
    if not all(isinstance(part, np.ndarray) for _, part in parts):
        return {field: [value for _, part in parts for value in part]}
    first, shape = parts[0][0], parts[0][1].shape
    for name, part in parts:
        if part.shape[1:] != shape[1:]:
            raise DataError(
                f"graph {name}: {owner} column {field!r} has the shape {list(part.shape)}, graph {first} has {list(shape)}"
            )
    values = np.concatenate([part for _, part in parts])
    if values.ndim > 2:
        raise DataError(f"{owner} column {field!r} has {values.ndim} dimensions; it must have one or two")
    if values.ndim == 1 or values.shape[1] == 1:
        return {field: values.reshape(-1)}
    return {f"{field}{i}": column for i, column in enumerate(values.T)}
