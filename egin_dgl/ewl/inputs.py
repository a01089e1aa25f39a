"""GraphSet: graphs of DGL, networkx or PyG, a GraphDataset, arrays, or lists of these, as flat arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from egin_dgl.data.dataset import GraphDataset, Indices
from egin_dgl.data.ragged import gather_rows, offsets_of
from egin_dgl.data.readers.columns import ColumnSelection, to_numpy
from egin_dgl.data.readers.libraries import kind_of, read_graph
from egin_dgl.errors import DataError
from egin_dgl.ewl.labels import as_labels, concat_labels


@dataclass(frozen=True, eq=False, repr=False)
class GraphSet:
    """G graphs with N nodes and E directed edges in total as flat numpy arrays.

    Args:
        node_offsets: Graph g has the nodes ``node_offsets[g]:node_offsets[g + 1]``, :math:`(G + 1,)` int64.
        src, dst: Ends of each edge, numbered across the set, in any order, :math:`(E,)` int64.
        node_labels: :math:`(N, p)` numbers or :math:`(N,)` other values.
        edge_labels: :math:`(E, q)` numbers or :math:`(E,)` other values.
    """

    node_offsets: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    node_labels: np.ndarray
    edge_labels: np.ndarray

    def __len__(self) -> int:
        return len(self.node_offsets) - 1

    def __repr__(self) -> str:
        return f"GraphSet({len(self)} graphs, {self.num_nodes} nodes, {len(self.src)} edges)"

    def __getitem__(self, index: int) -> "GraphSet":
        if not -len(self) <= index < len(self):
            raise IndexError(f"graph {index} of {len(self)}")
        return self.subset([index % len(self)])

    @property
    def num_nodes(self) -> int:
        return int(self.node_offsets[-1])

    @cached_property
    def graph_of_node(self) -> np.ndarray:
        """The graph of each node, (N,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.node_offsets))

    @cached_property
    def edges_by_graph(self) -> tuple[np.ndarray, np.ndarray]:
        """Edges in the order of their graphs, (E,), and the first edge of each graph, (G + 1,)."""
        graph = self.graph_of_node[self.dst]
        return np.argsort(graph, kind="stable"), offsets_of(np.bincount(graph, minlength=len(self)))

    def subset(self, indices: Indices) -> "GraphSet":
        """The graphs `indices`, in that order."""
        indices = np.asarray(indices, dtype=np.int64)
        order, edge_offsets = self.edges_by_graph
        nodes, offsets = gather_rows(self.node_offsets, indices)
        edges, new_edge_offsets = gather_rows(edge_offsets, indices)
        edges = order[edges]
        shift = np.repeat(offsets[:-1] - self.node_offsets[indices], np.diff(new_edge_offsets))
        ends = self.src[edges] + shift, self.dst[edges] + shift
        return GraphSet(offsets, *ends, self.node_labels[nodes], self.edge_labels[edges])


def as_graph_set(
    graphs: object,
    node_labels: object = None,
    edge_labels: object = None,
    decimals: int | None = None,
    attributes: bool = True,
) -> GraphSet:
    """Convert graphs of any accepted kind to a GraphSet.

    Args:
        graphs: A GraphSet; a GraphDataset (labels: its features); a DGLGraph, batched or not (``ndata["feat"]`` and
            ``edata["feat"]``); a networkx graph (all attributes; an undirected edge counts in both directions); PyG's
            Data (x and edge_attr); each of these as (graph, class); arrays (src, dst, num_nodes) or
            (src, dst, node_offsets); or a list of any of these.
        node_labels, edge_labels: Labels to use instead, in the order of the input; the name of a field; or, for a list
            of graphs, a list of labels.
        decimals: Round real labels.
        attributes: False ignores the continuous columns of a GraphDataset.

    >>> as_graph_set([([0, 1], [1, 0], 2), ([], [], 1)])
    GraphSet(2 graphs, 3 nodes, 2 edges)
    """
    if isinstance(graphs, tuple) and len(graphs) == 2 and kind_of(graphs[0]):  # (graph, class)
        graphs = graphs[0]
    nodes: object = None
    edges: object = None
    fields = [name if isinstance(name, str) else None for name in (node_labels, edge_labels)]
    if isinstance(graphs, GraphSet):
        offsets, src, dst = graphs.node_offsets, graphs.src, graphs.dst
        nodes, edges = graphs.node_labels, graphs.edge_labels
    elif kind_of(graphs):
        if kind_of(graphs) == "DGL graph":
            graph: Any = graphs
            src, dst = (_integers(ends, "edges") for ends in graph.edges())
            offsets = offsets_of(_integers(graph.batch_num_nodes(), "node counts"))
            nodes = _field(graph.ndata, fields[0], "node")
            edges = _field(graph.edata, fields[1], "edge")
        else:
            nodes_of, edges_of = (ColumnSelection(None if name is None else [name]) for name in fields)
            one = read_graph(graphs, (nodes_of, edges_of))
            offsets, src, dst = np.array([0, one.nodes]), one.src, one.dst
            nodes = _join(one.node_columns, fields[0], "node")
            edges = _join(one.edge_columns, fields[1], "edge")
        node_labels, edge_labels = (None if isinstance(x, str) else x for x in (node_labels, edge_labels))
    elif isinstance(graphs, GraphDataset):
        offsets, src, dst = (_integers(getattr(graphs, k), k) for k in ("node_offsets", "src", "dst"))
        skip = (0, 0) if attributes else (graphs.info.node_attributes, graphs.info.edge_attributes)
        nodes, edges = graphs.node_feats[:, skip[0] :], graphs.edge_feats[:, skip[1] :]
    elif isinstance(graphs, tuple) and len(graphs) == 3 and not isinstance(graphs[0], (tuple, GraphSet)):
        src, dst = _integers(graphs[0], "src"), _integers(graphs[1], "dst")
        offsets = _integers(graphs[2], "num_nodes or node_offsets")
        offsets = np.array([0, int(offsets)]) if offsets.ndim == 0 else offsets
        _check(offsets, src, dst)
    elif isinstance(graphs, Sequence) and not isinstance(graphs, str):
        return concatenate(
            [
                as_graph_set(graph, _select(node_labels, k), _select(edge_labels, k), decimals, attributes)
                for k, graph in enumerate(graphs)
            ]
        )
    else:
        raise DataError(
            f"cannot read graphs from {type(graphs).__name__}: pass a DGLGraph, a networkx graph, "
            "PyG's Data, a GraphDataset, (src, dst, num_nodes) or a list of these"
        )
    nodes = nodes if node_labels is None else node_labels
    edges = edges if edge_labels is None else edge_labels
    labels = (
        as_labels(nodes, int(offsets[-1]), "node", decimals),
        as_labels(edges, len(src), "edge", decimals),
    )
    return GraphSet(offsets, src, dst, *labels)


def concatenate(sets: Sequence[GraphSet]) -> GraphSet:
    """The graphs of all sets."""
    if not sets:
        empty, none = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.int64)
        return GraphSet(np.zeros(1, dtype=np.int64), empty, empty, none, none)
    shifted = list(zip(sets, offsets_of(np.array([s.num_nodes for s in sets])), strict=False))
    return GraphSet(
        offsets_of(np.concatenate([np.diff(s.node_offsets) for s in sets])),
        np.concatenate([s.src + first for s, first in shifted]),
        np.concatenate([s.dst + first for s, first in shifted]),
        concat_labels([s.node_labels for s in sets], "node"),
        concat_labels([s.edge_labels for s in sets], "edge"),
    )


def _select(labels: object, graph: int) -> object:
    """Labels of one graph of a list; the name of a field applies to all."""
    if labels is None or isinstance(labels, str):
        return labels
    if not isinstance(labels, (Sequence, np.ndarray, Tensor)):
        raise DataError(f"labels of a list of graphs must be a list too, got {type(labels).__name__}")
    return labels[graph]


def _integers(values: object, what: str) -> np.ndarray:
    array = np.asarray(to_numpy(values))
    if array.size and array.dtype.kind not in "iu":
        raise DataError(f"{what} must be integers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def _field(data: Mapping[str, Any], name: str | None, owner: str) -> object:
    """The named labels of a DGLGraph, by default `feat`."""
    if name is not None and name not in data:
        raise DataError(f"the graph has no {owner} field {name!r}, only {', '.join(data) or 'none'}")
    return data.get(name or "feat")


def _join(columns: Mapping[str, Any], name: str | None, owner: str) -> object:
    """The same of another graph, by default all fields in the order of their names, which all graphs share."""
    if name is not None and columns:
        return _field(columns, name, owner)
    if len(columns) < 2:
        return next(iter(columns.values()), None)
    rows = zip(*(columns[name] for name in sorted(columns)), strict=True)
    return [tuple(x for value in row for x in np.ravel(value).tolist()) for row in rows]


def _check(offsets: np.ndarray, src: np.ndarray, dst: np.ndarray) -> None:
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise DataError("node_offsets must start at 0 and not decrease")
    if src.ndim != 1 or src.shape != dst.shape:
        raise DataError(f"src and dst must have the same length, got {src.shape} and {dst.shape}")
    # As unsigned integers, negative numbers are huge.
    if len(src) and max(src.view(np.uint64).max(), dst.view(np.uint64).max()) >= offsets[-1]:
        raise DataError(f"an edge ends outside the nodes 0 to {offsets[-1] - 1}")
    if len(offsets) > 2 and len(src):
        graph = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        if (graph[src] != graph[dst]).any():
            raise DataError("an edge joins two graphs; src and dst number nodes across the set")
