"""One flat record for every way of giving graphs: of DGL, networkx or PyG, a GraphDataset, arrays, or lists of these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dgl
import numpy as np
from torch import Tensor

from egin_dgl.data.dataset import GraphDataset, Indices
from egin_dgl.data.ragged import gather_rows, offsets_of
from egin_dgl.data.readers.columns import ColumnSelection
from egin_dgl.data.readers.graph_objects import kind_of, read_graph
from egin_dgl.errors import DataError
from egin_dgl.ewl.labels import as_labels, join_labels


@dataclass(frozen=True, eq=False, repr=False)
class GraphSet:
    """G graphs with N nodes and E directed edges in total, laid end to end as numpy arrays.

    Edge e goes from node src[e] to node dst[e], numbered across the set; node dst[e] sees it, so an undirected edge
    is given in both directions and a directed graph is refined by its in-neighbours. Edges may come in any order.
    """

    node_offsets: np.ndarray  # (G + 1,) int64: graph g has the nodes node_offsets[g]:node_offsets[g + 1]
    src: np.ndarray  # (E,) int64
    dst: np.ndarray  # (E,) int64
    node_labels: np.ndarray  # (N, p) numbers or (N,) names
    edge_labels: np.ndarray  # (E, q) numbers or (E,) names

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
        """(N,) the graph of each node."""
        return np.repeat(np.arange(len(self)), np.diff(self.node_offsets))

    @cached_property
    def edges_by_graph(self) -> tuple[np.ndarray, np.ndarray]:
        """The edges in the order of their graphs, (E,), and where each graph's begin, (G + 1,)."""
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
        return GraphSet(
            offsets,
            self.src[edges] + shift,
            self.dst[edges] + shift,
            self.node_labels[nodes],
            self.edge_labels[edges],
        )


def as_graph_set(
    graphs: object,
    node_labels: object = None,
    edge_labels: object = None,
    decimals: int | None = None,
    attributes: bool = True,
) -> GraphSet:
    """Turn any accepted kind of graphs into a GraphSet.

    graphs: a GraphSet; a GraphDataset (labels are its feature vectors); a DGLGraph, batched or not (labels are
    ndata["feat"] and edata["feat"] where they are there); a networkx graph (labels are all attributes of its nodes and
    edges; an undirected edge is seen from both ends) or PyG's Data (x and edge_attr); each also as (graph, class);
    (src, dst, num_nodes) or (src, dst, node_offsets) as arrays; or a list of any of these.
    node_labels, edge_labels: other labels, one for each node and edge in the order of the input; for a graph of a
    library also the name of a field; for a list of graphs a list of labels.
    attributes: False leaves out the continuous columns of a GraphDataset, so that only the discrete labels count.
    """
    if isinstance(graphs, tuple) and len(graphs) == 2 and kind_of(graphs[0]):  # (graph, class)
        graphs = graphs[0]
    nodes: object = None
    edges: object = None
    if isinstance(graphs, GraphSet):
        offsets, src, dst = graphs.node_offsets, graphs.src, graphs.dst
        nodes, edges = graphs.node_labels, graphs.edge_labels
    elif isinstance(graphs, dgl.DGLGraph):
        src, dst = (_integers(ends, "edges") for ends in graphs.edges())
        offsets = offsets_of(_integers(graphs.batch_num_nodes(), "node counts"))
        nodes, node_labels = _field(graphs.ndata, node_labels, "node")
        edges, edge_labels = _field(graphs.edata, edge_labels, "edge")
    elif kind_of(graphs):
        fields = [[name] if isinstance(name, str) else None for name in (node_labels, edge_labels)]
        one = read_graph(graphs, (ColumnSelection(fields[0]), ColumnSelection(fields[1])))
        offsets, src, dst = np.array([0, one.nodes]), one.src, one.dst
        nodes, node_labels = _columns(one.node_columns, node_labels, "node")
        edges, edge_labels = _columns(one.edge_columns, edge_labels, "edge")
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
        labels = [(_labels_of(node_labels, k), _labels_of(edge_labels, k)) for k in range(len(graphs))]
        pairs = zip(graphs, labels, strict=True)
        return concatenate([as_graph_set(graph, *own, decimals, attributes) for graph, own in pairs])
    else:
        raise DataError(
            f"cannot read graphs from {type(graphs).__name__}: give a DGLGraph, a networkx graph, "
            "PyG's Data, a GraphDataset, (src, dst, num_nodes) or a list of these"
        )
    nodes = nodes if node_labels is None else node_labels
    edges = edges if edge_labels is None else edge_labels
    return GraphSet(
        offsets,
        src,
        dst,
        as_labels(nodes, int(offsets[-1]), "node", decimals),
        as_labels(edges, len(src), "edge", decimals),
    )


def concatenate(sets: Sequence[GraphSet]) -> GraphSet:
    """The graphs of all sets, one after the other."""
    if not sets:
        empty, none = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.int64)
        return GraphSet(np.zeros(1, dtype=np.int64), empty, empty, none, none)
    base = offsets_of(np.array([s.num_nodes for s in sets]))
    offsets = [s.node_offsets[1:] + first for s, first in zip(sets, base, strict=False)]
    return GraphSet(
        np.concatenate([np.zeros(1, dtype=np.int64), *offsets]),
        np.concatenate([s.src + first for s, first in zip(sets, base, strict=False)]),
        np.concatenate([s.dst + first for s, first in zip(sets, base, strict=False)]),
        join_labels([s.node_labels for s in sets], "node"),
        join_labels([s.edge_labels for s in sets], "edge"),
    )


def _labels_of(labels: object, graph: int) -> object:
    """The labels of one graph in a list of graphs; the name of a field is the same for all."""
    if labels is None or isinstance(labels, str):
        return labels
    if not isinstance(labels, (Sequence, np.ndarray, Tensor)):
        raise DataError(f"labels of a list of graphs must be a list too, got {type(labels).__name__}")
    return labels[graph]


def _integers(values: object, what: str) -> np.ndarray:
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise DataError(f"{what} must be integers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def _field(data: Mapping[str, Tensor], labels: object, what: str) -> tuple[object, object]:
    """The default labels of a DGLGraph and the labels to use instead; a string names a field."""
    if isinstance(labels, str):
        if labels not in data:
            raise DataError(f"the graph has no {what} field {labels!r}, only {', '.join(data) or 'none'}")
        return data[labels], None
    return data.get("feat"), labels


def _columns(columns: Mapping[str, Any], labels: object, what: str) -> tuple[object, object]:
    """The default labels of another library's graph and the labels to use instead; a string names a field."""
    if isinstance(labels, str) and labels not in columns and columns:
        raise DataError(f"the graph has no {what} field {labels!r}, only {', '.join(columns)}")
    if labels is not None and not isinstance(labels, str):
        return None, labels
    if len(columns) < 2:
        return next(iter(columns.values()), None), None
    # In the order of their names, as another graph may have them in another order.
    rows = zip(*(columns[name] for name in sorted(columns)), strict=True)
    return [tuple(x for value in row for x in np.ravel(value).tolist()) for row in rows], None


def _check(offsets: np.ndarray, src: np.ndarray, dst: np.ndarray) -> None:
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise DataError("node_offsets must start at 0 and never fall")
    if src.ndim != 1 or src.shape != dst.shape:
        raise DataError(f"src and dst must be two lists of one length, got {src.shape} and {dst.shape}")
    # Read as unsigned, a negative number is a huge one.
    if len(src) and max(src.view(np.uint64).max(), dst.view(np.uint64).max()) >= offsets[-1]:
        raise DataError(f"an edge ends outside the nodes 0 to {offsets[-1] - 1}")
    if len(offsets) > 2 and len(src):
        graph = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        if (graph[src] != graph[dst]).any():
            raise DataError("an edge joins two graphs; src and dst number nodes across the set")
