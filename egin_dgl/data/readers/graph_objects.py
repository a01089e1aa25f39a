"""Graphs of other libraries → arrays: DGLGraphs, networkx graphs, PyG's Data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

import dgl
import networkx as nx
import numpy as np
import torch

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.ragged import offsets_of
from egin_dgl.data.readers.columns import ColumnSelection, label_of, objects
from egin_dgl.errors import DataError

# Of a PyG graph these are read unless others are named: which of its fields belong to nodes is nowhere said.
PYG_NODE_FIELDS, PYG_EDGE_FIELDS = ("x", "pos"), ("edge_attr", "edge_weight")


@dataclass(frozen=True)
class OneGraph:
    """A graph of any library: directed edges, and the columns of its nodes and edges by name."""

    nodes: int
    src: np.ndarray
    dst: np.ndarray
    node_columns: Mapping[str, Any]
    edge_columns: Mapping[str, Any]
    label: Any = None  # its class, where it carries one


def kind_of(graph: object) -> str | None:
    """Which library a graph is of; PyG's is recognised without importing PyG."""
    if isinstance(graph, dgl.DGLGraph):
        return "DGL graph"
    if isinstance(graph, nx.Graph):
        return "networkx graph"
    if isinstance(graph, str):
        return "SMILES string"
    if any(base.__module__ == "torch_geometric.data.data" for base in type(graph).__mro__):
        return "PyG graph"
    return None


def read_graph(
    graph: object, nodes: ColumnSelection, edges: ColumnSelection, molecules: str = "tu"
) -> OneGraph:
    """One graph, with the columns that are chosen; a SMILES string as a molecule with the features of that name."""
    if isinstance(graph, str):
        from egin_dgl.data.readers.molecules import read_molecule  # here, as it needs RDKit, and this file

        return read_molecule(graph, molecules)
    reader = {"DGL graph": _from_dgl, "networkx graph": _from_networkx, "PyG graph": _from_pyg}[
        kind_of(graph) or ""
    ]
    return reader(graph, nodes.names, edges.names)


def graphs_to_arrays(
    graphs: Sequence,
    labels: object = None,
    nodes: ColumnSelection | None = None,
    edges: ColumnSelection | None = None,
    ids: Sequence | None = None,
    molecules: str = "tu",
) -> GraphArrays:
    """Graphs of one library, or SMILES, with their classes; every fault is a DataError that names graph and column.

    A list of (graph, class) is taken apart, as DGL's datasets are; PyG's graphs bring their class as y.
    """
    nodes, edges = nodes or ColumnSelection(), edges or ColumnSelection()
    graphs = list(graphs)
    if not graphs:
        raise DataError("there are no graphs")
    if labels is None and all(isinstance(graph, tuple) and len(graph) == 2 for graph in graphs):
        labels, graphs = [label for _, label in graphs], [graph for graph, _ in graphs]
    names = tuple(str(name) for name in ids) if ids is not None else tuple(map(str, range(len(graphs))))
    if len(names) != len(graphs):
        raise DataError(f"there are {len(graphs)} graphs and {len(names)} ids")
    first = kind_of(graphs[0])
    read = []
    for number, graph in enumerate(graphs):
        if (kind := kind_of(graph)) is None or kind != first:
            other = kind or type(graph).__name__
            wanted = (
                "a DGLGraph, a networkx graph, PyG's Data or a SMILES string"
                if number == 0 or kind is None
                else f"a {first}"
            )
            raise DataError(
                f"graph {names[number]} is a {other}, where {wanted} is needed; give graphs of one library"
            )
        try:
            one = read_graph(graph, nodes, edges, molecules)
        except DataError as error:
            raise DataError(f"graph {names[number]}: {error}") from None
        if one.nodes == 0:
            raise DataError(f"graph {names[number]} has no nodes; leave it out")
        read.append(one)
    if labels is None and all(one.label is not None for one in read):
        labels = [one.label for one in read]
    classes = None if labels is None else classes_of(labels, names)
    arrays = end_to_end(read, nodes, edges, names, classes)
    return replace(arrays, smiles=tuple(graphs)) if first == "SMILES string" else arrays


def end_to_end(
    graphs: Sequence[OneGraph],
    nodes: ColumnSelection,
    edges: ColumnSelection,
    names: tuple[str, ...],
    labels: np.ndarray | None = None,
) -> GraphArrays:
    """Graphs laid end to end; there may be none."""
    starts = offsets_of(np.array([graph.nodes for graph in graphs]))
    edge_starts = offsets_of(np.array([len(graph.src) for graph in graphs]))
    node_columns = _joined([(graph.nodes, graph.node_columns) for graph in graphs], names, nodes, "node")
    edge_columns = _joined([(len(graph.src), graph.edge_columns) for graph in graphs], names, edges, "edge")
    of_nodes = nodes.read(node_columns, int(starts[-1]), partial(_place, names, starts, "node"), "node")
    of_edges = edges.read(
        edge_columns, int(edge_starts[-1]), partial(_place, names, edge_starts, "edge"), "edge"
    )
    pairs, none = list(zip(graphs, starts.tolist(), strict=False)), np.zeros(0, dtype=np.int64)
    return GraphArrays(
        node_graph=np.repeat(np.arange(len(graphs)), np.diff(starts)),
        src=np.concatenate([none, *(graph.src + start for graph, start in pairs)]),
        dst=np.concatenate([none, *(graph.dst + start for graph, start in pairs)]),
        graphs=len(graphs),
        graph_labels=labels,
        node_labels=of_nodes.labels,
        node_attributes=of_nodes.attributes,
        edge_labels=of_edges.labels,
        edge_attributes=of_edges.attributes,
        ids=names,
        node_label_names=of_nodes.label_names,
        node_attribute_names=of_nodes.attribute_names,
        edge_label_names=of_edges.label_names,
        edge_attribute_names=of_edges.attribute_names,
    )


def classes_of(labels: object, names: Sequence[str]) -> np.ndarray:
    """One class for each graph: integers, strings, or None where it is not known; (G,) objects."""
    labels = _array(labels)
    if (
        isinstance(labels, (str, Mapping))
        or not hasattr(labels, "__iter__")
        or getattr(labels, "ndim", 1) == 0
    ):
        raise DataError(f"labels must be a list, one class for each graph, got {type(labels).__name__}")
    values = [_class(label) for label in labels]
    if len(values) != len(names):
        raise DataError(f"there are {len(names)} graphs and {len(values)} labels")
    for name, value in zip(names, values, strict=True):
        if isinstance(value, (list, tuple, dict, set)):
            raise DataError(
                f"graph {name} has the label {value}; each graph has one class here (single-label classification)"
            )
        if isinstance(value, float):
            raise DataError(
                f"graph {name} has the label {value}; classes are whole numbers or words, make some of these numbers"
            )
        if not isinstance(value, (int, str, type(None))):
            raise DataError(
                f"graph {name} has a {type(value).__name__} as its label; give a word or a number"
            )
    return objects(values)


def _class(label: object) -> object:
    """A class as an integer or a string, where it is one; [3] is 3, and an Enum's member goes by its name."""
    label = _array(label)
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
    return label_of(label) if isinstance(label, (bool, int, float, str)) else label


def _joined(
    graphs: list[tuple[int, Mapping[str, Any]]], names: Sequence[str], choice: ColumnSelection, what: str
) -> dict[str, Any]:
    """Each column of all graphs, end to end. All have the same columns, but those without a row of them."""
    filled = [(name, columns) for name, (rows, columns) in zip(names, graphs, strict=True) if rows]
    wanted = choice.names
    if wanted is None:
        wanted = list(dict.fromkeys(column for _, columns in filled for column in columns))
    joined: dict[str, Any] = {}
    for column in wanted:
        parts = []
        for name, columns in filled:
            if column not in columns:
                raise DataError(
                    f"graph {name} has no {what} column {column!r}; it has {', '.join(map(repr, columns)) or 'none'}"
                )
            parts.append(columns[column])
        if not parts:
            continue
        if all(isinstance(part, np.ndarray) for part in parts):
            shapes = [part.shape[1:] for part in parts]
            if odd := next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None):
                raise DataError(
                    f"graph {filled[odd][0]}: {what} column {column!r} has the shape {list(parts[odd].shape)}, "
                    f"graph {filled[0][0]} has {list(parts[0].shape)}"
                )
            joined[column] = np.concatenate(parts)
        else:
            joined[column] = [value for part in parts for value in part]
    return joined


def _place(names: Sequence[str], starts: np.ndarray, what: str, row: int) -> str:
    graph = int(np.searchsorted(starts, row, side="right")) - 1
    return f"graph {names[graph]}, {what} {row - starts[graph]}"


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value


def _from_dgl(graph: dgl.DGLGraph, nodes: list[str] | None, edges: list[str] | None) -> OneGraph:
    if not graph.is_homogeneous:
        raise DataError("nodes or edges of several types; dgl.to_homogeneous makes them labels")
    if graph.batch_size > 1:
        raise DataError(f"it is a batch of {graph.batch_size}; dgl.unbatch gives the graphs")
    src, dst = (_array(ends).astype(np.int64) for ends in graph.edges())
    # DGL's own fields, such as the numbers in a larger graph, begin with a line.
    fields = [
        {
            name: _array(data[name])
            for name in data
            if (wanted is None and name[0] != "_") or name in (wanted or ())
        }
        for data, wanted in ((graph.ndata, nodes), (graph.edata, edges))
    ]
    return OneGraph(graph.num_nodes(), src, dst, *fields)


def _from_networkx(graph: nx.Graph, nodes: list[str] | None, edges: list[str] | None) -> OneGraph:
    number = {node: i for i, node in enumerate(graph)}
    ends = list(graph.edges(data=True))
    src = np.array([number[u] for u, _, _ in ends], dtype=np.int64)
    dst = np.array([number[v] for _, v, _ in ends], dtype=np.int64)
    node_columns = _attributes(
        [data for _, data in graph.nodes(data=True)], nodes, lambda i: f"node {list(graph)[i]!r}"
    )
    edge_columns = _attributes([data for _, _, data in ends], edges, lambda i: f"edge {ends[i][:2]!r}")
    if not graph.is_directed():
        back = np.flatnonzero(src != dst)  # a loop is there once
        src, dst = np.concatenate([src, dst[back]]), np.concatenate([dst, src[back]])
        edge_columns = {
            name: [*values, *(values[i] for i in back.tolist())] for name, values in edge_columns.items()
        }
    return OneGraph(len(number), src, dst, node_columns, edge_columns)


def _attributes(rows: list[dict], wanted: list[str] | None, place: Callable[[int], str]) -> dict[str, list]:
    """The attributes of nodes or edges, which all have the same ones, as columns."""
    names = list(dict.fromkeys(name for row in rows for name in row)) if wanted is None else wanted
    for i, row in enumerate(rows):
        if missing := [name for name in names if name not in row]:
            raise DataError(f"{place(i)} has no {missing[0]!r}")
    return {str(name): [row[name] for row in rows] for name in names} if rows else {}


def _from_pyg(data: Any, nodes: list[str] | None, edges: list[str] | None) -> OneGraph:
    if getattr(data, "edge_index", None) is None or data.num_nodes is None:
        raise DataError("PyG data without an edge_index, or without its number of nodes, is no graph")
    if getattr(data, "ptr", None) is not None:
        raise DataError("it is a batch; its to_data_list() gives the graphs")
    src, dst = _array(data.edge_index).astype(np.int64)
    sides = ((nodes, PYG_NODE_FIELDS, data.num_nodes, "node"), (edges, PYG_EDGE_FIELDS, len(src), "edge"))
    fields = []
    for wanted, usual, rows, what in sides:
        names = usual if wanted is None else wanted
        found = {name: _array(data[name]) for name in names if name in data and data[name] is not None}
        for name, value in found.items():
            if len(value) != rows:
                raise DataError(f"{what} column {name!r} has {len(value)} rows for {rows} {what}s")
        fields.append(found)
    if len(src) and not 0 <= min(src.min(), dst.min()) <= max(src.max(), dst.max()) < data.num_nodes:
        raise DataError(f"an edge ends outside the nodes 0 to {data.num_nodes - 1}")
    return OneGraph(int(data.num_nodes), src, dst, fields[0], fields[1], getattr(data, "y", None))
