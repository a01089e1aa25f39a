"""Raw graphs as numpy arrays: what every reader yields and every encoder takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from egin_dgl.data.ragged import offsets_of


@dataclass(frozen=True)
class RawColumns:
    """What nodes or edges carry: labels (rows, k), attributes (rows, a), and the names of their columns, or none."""

    rows: int
    labels: np.ndarray | None = None
    attributes: np.ndarray | None = None
    label_names: tuple[str, ...] = ()
    attribute_names: tuple[str, ...] = ()

    @property
    def widths(self) -> tuple[int, int]:
        """How many columns of attributes, and of labels."""
        attributes, labels = (0 if x is None else x.shape[1] for x in (self.attributes, self.labels))
        return attributes, labels

    def by_name(self) -> dict[str, np.ndarray]:
        """Each column (rows,) under its name; nothing where columns have none."""
        tables = ((self.attribute_names, self.attributes), (self.label_names, self.labels))
        return {
            name: table[:, i] for names, table in tables if table is not None for i, name in enumerate(names)
        }


@dataclass(frozen=True)
class GraphArrays:
    """N nodes, E directed edges and G graphs as numpy arrays, all numbers from 0.

    node_graph (N,) is non-decreasing; src, dst (E,) are node numbers across all graphs. Labels are (·, k) integers, or
    objects where a column holds strings; attributes are (·, a) float64; what the graphs lack is None. Columns have
    names, one for each, or none. graph_labels (G,) are integers or strings, None where a graph's class is not known.
    """

    node_graph: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    graphs: int
    graph_labels: np.ndarray | None = None
    node_labels: np.ndarray | None = None
    node_attributes: np.ndarray | None = None
    edge_labels: np.ndarray | None = None
    edge_attributes: np.ndarray | None = None
    warnings: tuple[str, ...] = ()  # what reading changed in the data
    ids: tuple[str, ...] = ()  # what each graph is called where it comes from; 0, 1, 2 … if not said
    node_label_names: tuple[str, ...] = ()
    node_attribute_names: tuple[str, ...] = ()
    edge_label_names: tuple[str, ...] = ()
    edge_attribute_names: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()  # the part of a split that each graph was given to, where that was said
    smiles: tuple[str, ...] = ()  # of molecules
    skipped: tuple[str, ...] = ()  # what could not be read, each with its place and reason

    def __post_init__(self) -> None:
        if not self.ids:
            object.__setattr__(self, "ids", tuple(map(str, range(self.graphs))))

    @property
    def of_nodes(self) -> RawColumns:
        tables = (self.node_labels, self.node_attributes, self.node_label_names, self.node_attribute_names)
        return RawColumns(len(self.node_graph), *tables)

    @property
    def of_edges(self) -> RawColumns:
        tables = (self.edge_labels, self.edge_attributes, self.edge_label_names, self.edge_attribute_names)
        return RawColumns(len(self.src), *tables)

    def noting(self, message: str) -> "GraphArrays":
        """A copy that remembers what was changed in the data."""
        return replace(self, warnings=(*self.warnings, message))

    def chunks(self, at_once: int) -> Iterator["GraphArrays"]:
        """The same graphs, at most so many at a time; what is said of all of them goes with the first."""
        nodes = offsets_of(np.bincount(self.node_graph, minlength=self.graphs))
        graph_of_edge = self.node_graph[self.src]
        order = np.argsort(graph_of_edge, kind="stable")
        edges = offsets_of(np.bincount(graph_of_edge, minlength=self.graphs))
        for first in range(0, self.graphs, at_once):
            last = min(first + at_once, self.graphs)
            own_nodes = slice(nodes[first], nodes[last])
            own_edges = order[edges[first] : edges[last]]
            yield replace(
                self,
                node_graph=self.node_graph[own_nodes] - first,
                src=self.src[own_edges] - nodes[first],
                dst=self.dst[own_edges] - nodes[first],
                graphs=last - first,
                graph_labels=None if self.graph_labels is None else self.graph_labels[first:last],
                node_labels=None if self.node_labels is None else self.node_labels[own_nodes],
                node_attributes=None if self.node_attributes is None else self.node_attributes[own_nodes],
                edge_labels=None if self.edge_labels is None else self.edge_labels[own_edges],
                edge_attributes=None if self.edge_attributes is None else self.edge_attributes[own_edges],
                warnings=self.warnings if first == 0 else (),
                ids=self.ids[first:last],
                parts=self.parts[first:last],
                smiles=self.smiles[first:last],
                skipped=self.skipped if first == 0 else (),
            )


TABLES_OF_GRAPHS = ("graph_labels", "node_labels", "node_attributes", "edge_labels", "edge_attributes")
NAMES_OF_COLUMNS = tuple(field.name for field in fields(GraphArrays) if field.name.endswith("_names"))


def concatenated(pieces: Sequence[GraphArrays]) -> GraphArrays:
    """The graphs of all pieces, which have the same columns, one after the other."""
    pieces = list(pieces)
    full = [piece for piece in pieces if piece.graphs] or pieces[:1]
    nodes = offsets_of(np.array([len(piece.node_graph) for piece in full]))
    graphs = offsets_of(np.array([piece.graphs for piece in full]))

    def joined(key: str) -> np.ndarray | None:
        # A piece without an edge may have no columns of edges.
        tables = [table for piece in full if (table := getattr(piece, key)) is not None]
        return np.concatenate(tables) if tables else None

    def longest(key: str) -> tuple[str, ...]:
        return max((getattr(piece, key) for piece in full), key=len)

    def of_all(key: str) -> tuple[str, ...]:
        return tuple(text for piece in pieces for text in getattr(piece, key))

    rest: dict[str, Any] = {key: joined(key) for key in TABLES_OF_GRAPHS}
    rest |= {key: longest(key) for key in NAMES_OF_COLUMNS}
    rest |= {key: of_all(key) for key in ("warnings", "ids", "parts", "smiles", "skipped")}
    return GraphArrays(
        node_graph=np.concatenate(
            [piece.node_graph + first for piece, first in zip(full, graphs, strict=False)]
        ),
        src=np.concatenate([piece.src + first for piece, first in zip(full, nodes, strict=False)]),
        dst=np.concatenate([piece.dst + first for piece, first in zip(full, nodes, strict=False)]),
        graphs=int(graphs[-1]),
        **rest,
    )


def arrange_edges(arrays: GraphArrays, symmetric: bool = True, self_loops: bool = False) -> GraphArrays:
    """Group edges by graph; drop self-loops unless wanted; add the reverse of each one-way edge if `symmetric`.

    A reverse edge is added, with the same label and attributes, only where (v, u) does not occur at all: files that
    list both directions, as nearly all do, stay as they are, and parallel edges are kept. Where some edges have their
    reverse and others not, that is noted; files that list each edge once mean it so.
    """
    src, dst = arrays.src, arrays.dst
    rows = np.arange(len(src))
    if not self_loops and (loops := src == dst).any():
        arrays = arrays.noting(f"{loops.sum()} self-loop(s) removed")
        rows = rows[~loops]
    ends = np.stack([src[rows], dst[rows]])
    if symmetric:
        nodes = len(arrays.node_graph)
        one_way = ~np.isin(ends[1] * nodes + ends[0], ends[0] * nodes + ends[1])
        if one_way.any():
            if not one_way.all():
                arrays = arrays.noting(f"{one_way.sum()} one-way edge(s) given their reverse")
            rows = np.concatenate([rows, rows[one_way]])
            ends = np.concatenate([ends, ends[::-1, one_way]], axis=1)
    order = np.argsort(arrays.node_graph[ends[0]], kind="stable")
    rows, (src, dst) = rows[order], ends[:, order]
    labels, attributes = (x if x is None else x[rows] for x in (arrays.edge_labels, arrays.edge_attributes))
    return replace(arrays, src=src, dst=dst, edge_labels=labels, edge_attributes=attributes)


def distinct(values: np.ndarray) -> tuple[list[int | str], np.ndarray]:
    """The distinct labels in order, numbers before strings, and which of them each value is: (n,) int64."""
    if values.dtype.kind in "iu":
        numbers, which = np.unique(values, return_inverse=True)
        return numbers.tolist(), which
    known: dict[int | str, int] = {}
    first_seen = [known.setdefault(value, len(known)) for value in values.tolist()]
    ordered = sorted(known, key=lambda value: (isinstance(value, str), value))
    place = np.empty(len(known), dtype=np.int64)
    place[[known[value] for value in ordered]] = np.arange(len(known))
    return ordered, place[np.array(first_seen, dtype=np.int64)]
