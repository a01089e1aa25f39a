"""One graph of DGL, networkx, PyG or RDKit, or a SMILES string, with its columns."""

import sys
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from egin_dgl.data.readers.columns import Selections, to_numpy
from egin_dgl.errors import DataError

if TYPE_CHECKING:
    import networkx as nx

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
    """The library of a graph; None for other objects. Libraries are recognised without importing them."""
    if (dgl := sys.modules.get("dgl")) and isinstance(graph, dgl.DGLGraph):
        return "DGL graph"
    if (nx := sys.modules.get("networkx")) and isinstance(graph, nx.Graph):
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


def _from_networkx(graph: "nx.Graph", nodes: list[str] | None, edges: list[str] | None) -> GraphObject:
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
