"""Graphs of DGL, networkx or PyG, and SMILES strings → GraphArrays."""

import sys
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np

from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.ragged import offsets_of
from egin_dgl.data.readers.columns import (
    ColumnSelection,
    Selections,
    parse_column,
    select_columns,
    stack_columns,
    to_numpy,
)
from egin_dgl.data.readers.raw_targets import all_classes, targets_of_objects
from egin_dgl.errors import DataError

# Fields of PyG's Data that are read by default; Data does not record which fields belong to nodes.
PYG_NODE_FIELDS, PYG_EDGE_FIELDS = ("x", "pos"), ("edge_attr", "edge_weight")
MOLECULES = ("SMILES string", "RDKit molecule")


@dataclass(frozen=True)
class GraphObject:
    """One graph of any library: directed edges, columns of nodes and edges by name, and its class if it has one."""

    nodes: int
    src: np.ndarray
    dst: np.ndarray
    node_columns: Mapping[str, Any]
    edge_columns: Mapping[str, Any]
    label: Any = None


def kind_of(graph: object) -> str | None:
    """The library of a graph; None for other objects. DGL and PyG are recognised without importing them."""
    if (dgl := sys.modules.get("dgl")) and isinstance(graph, dgl.DGLGraph):
        return "DGL graph"
    if isinstance(graph, nx.Graph):
        return "networkx graph"
    if isinstance(graph, str):
        return "SMILES string"
    if any(base.__module__ == "rdkit.Chem.rdchem" for base in type(graph).__mro__):
        return "RDKit molecule"
    if any(base.__module__ == "torch_geometric.data.data" for base in type(graph).__mro__):
        return "PyG graph"
    return None


def read_graph(graph: Any, columns: Selections, molecules: str = "tu") -> GraphObject:
    """Read one graph with the selected columns; `molecules` names the features of SMILES strings."""
    if kind_of(graph) in MOLECULES:
        from egin_dgl.data.readers.molecules import read_molecule  # it imports this module, and RDKit

        return read_molecule(graph, molecules)
    readers = {"DGL graph": _from_dgl, "networkx graph": _from_networkx, "PyG graph": _from_pyg}
    return readers[kind_of(graph) or ""](graph, columns[0].names, columns[1].names)


def _from_dgl(graph: Any, nodes: list[str] | None, edges: list[str] | None) -> GraphObject:
    if not graph.is_homogeneous:
        raise DataError("it is heterogeneous; dgl.to_homogeneous turns types into labels")
    if graph.batch_size > 1:
        raise DataError(f"it is a batch of {graph.batch_size}; dgl.unbatch gives the graphs")
    src, dst = (to_numpy(ends).astype(np.int64) for ends in graph.edges())

    def fields(data: Mapping[str, Any], wanted: list[str] | None, owner: str) -> dict[str, Any]:
        # The names of DGL's internal fields, such as _ID, start with an underscore.
        names = [name for name in data if (name[0] != "_" if wanted is None else name in wanted)]
        return _columns_to_numpy({name: data[name] for name in names}, owner)

    columns = fields(graph.ndata, nodes, "node"), fields(graph.edata, edges, "edge")
    return GraphObject(graph.num_nodes(), src, dst, *columns)


def _columns_to_numpy(columns: Mapping[str, Any], owner: str) -> dict[str, Any]:
    found = {}
    for name, value in columns.items():
        try:
            found[name] = to_numpy(value)
        except DataError as error:
            raise DataError(f"{owner} column {name!r}: {error}") from None
    return found


def _from_networkx(graph: nx.Graph, nodes: list[str] | None, edges: list[str] | None) -> GraphObject:
    number = {node: i for i, node in enumerate(graph)}
    ends = list(graph.edges(data=True))
    src = np.array([number[u] for u, _, _ in ends], dtype=np.int64)
    dst = np.array([number[v] for _, v, _ in ends], dtype=np.int64)
    rows = [data for _, data in graph.nodes(data=True)]
    node_columns = _attributes(rows, nodes, lambda i: f"node {_plain(list(graph)[i])!r}")
    edge_columns = _attributes(
        [data for _, _, data in ends], edges, lambda i: f"edge {tuple(map(_plain, ends[i][:2]))!r}"
    )
    if not graph.is_directed():
        back = np.flatnonzero(src != dst)  # a self-loop counts once
        src, dst = np.concatenate([src, dst[back]]), np.concatenate([dst, src[back]])
        edge_columns = {
            name: [*values, *(values[i] for i in back.tolist())] for name, values in edge_columns.items()
        }
    return GraphObject(len(number), src, dst, node_columns, edge_columns)


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name


def _attributes(rows: list[dict], wanted: list[str] | None, locate: Callable[[int], str]) -> dict[str, list]:
    """Attributes of nodes or edges, which must all have the same ones, as columns."""
    names = list(dict.fromkeys(name for row in rows for name in row)) if wanted is None else wanted
    for i, row in enumerate(rows):
        if missing := [name for name in names if name not in row]:
            raise DataError(f"{locate(i)} has no {missing[0]!r}")
    return {str(name): [row[name] for row in rows] for name in names} if rows else {}


def _from_pyg(data: Any, nodes: list[str] | None, edges: list[str] | None) -> GraphObject:
    if getattr(data, "edge_index", None) is None or data.num_nodes is None:
        raise DataError("it has no edge_index or no number of nodes")
    if getattr(data, "ptr", None) is not None:
        raise DataError("it is a batch; its to_data_list() gives the graphs")
    ends = _columns_to_numpy({"edge_index": data.edge_index}, "edge")["edge_index"]
    shape = list(getattr(ends, "shape", ()))
    if len(shape) != 2 or shape[0] != 2:
        raise DataError(f"edge_index has the shape {shape}; it must have two rows")
    src, dst = ends.astype(np.int64)
    if len(src) and not 0 <= min(src.min(), dst.min()) <= max(src.max(), dst.max()) < data.num_nodes:
        raise DataError(f"an edge ends outside the nodes 0 to {data.num_nodes - 1}")

    def fields(names: Sequence[str], rows: int, owner: str) -> dict[str, Any]:
        found = {name: data[name] for name in names if name in data and data[name] is not None}
        columns = _columns_to_numpy(found, owner)
        for name, value in columns.items():
            count = len(value) if isinstance(value, Sized) and getattr(value, "ndim", None) != 0 else 0
            if count != rows:
                raise DataError(f"{owner} column {name!r} has {count} rows for {rows} {owner}s")
        return columns

    node_columns = fields(PYG_NODE_FIELDS if nodes is None else nodes, data.num_nodes, "node")
    edge_columns = fields(PYG_EDGE_FIELDS if edges is None else edges, len(src), "edge")
    return GraphObject(int(data.num_nodes), src, dst, node_columns, edge_columns, getattr(data, "y", None))


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
