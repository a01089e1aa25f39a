"""Raw graphs as numpy arrays: the output of every reader and the input of every encoder."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from egin_dgl.data.ragged import offsets_of
from egin_dgl.options import TaskOption


@dataclass(frozen=True)
class CodedColumn:
    """A label column of few distinct values: their numbers take a tenth of the memory of objects."""

    codes: np.ndarray  # (rows,) integers
    values: tuple[int | str, ...]  # row r holds values[codes[r]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The values, (rows,) objects."""
        return np.array(self.values, dtype=object)[self.codes]


Column: TypeAlias = np.ndarray | CodedColumn


@dataclass(frozen=True)
class RawColumns:
    """Columns of nodes or edges before encoding."""

    rows: int = 0  # number of nodes or edges
    labels: np.ndarray | None = None  # categorical, (rows, k) integers, or objects where a column has strings
    attributes: np.ndarray | None = None  # continuous, (rows, a) float64
    label_names: tuple[str, ...] = ()  # one for each label column, or none
    attribute_names: tuple[str, ...] = ()  # one for each attribute column, or none
    label_values: tuple[
        tuple[int | str, ...], ...
    ] = ()  # if given, labels are numbers of these, see `CodedColumn`

    @property
    def widths(self) -> tuple[int, int]:
        """Number of attribute columns and of label columns."""
        attributes, labels = (0 if x is None else x.shape[1] for x in (self.attributes, self.labels))
        return attributes, labels

    def columns(self) -> tuple[list[np.ndarray], list[Column]]:
        """Attribute columns and label columns, (rows,) each."""
        attributes, labels = ([] if x is None else list(x.T) for x in (self.attributes, self.labels))
        if self.label_values:
            return attributes, [CodedColumn(*one) for one in zip(labels, self.label_values, strict=True)]
        return attributes, list(labels)

    def by_name(self) -> dict[str, Column]:
        """Each named column."""
        attributes, labels = self.columns()
        named: dict[str, Column] = dict(zip(self.attribute_names, attributes, strict=False))
        return named | dict(zip(self.label_names, labels, strict=False))

    def take(self, index: np.ndarray | slice, rows: int) -> "RawColumns":
        """The rows selected by `index`, of which there are `rows`."""
        labels, attributes = (x if x is None else x[index] for x in (self.labels, self.attributes))
        return replace(self, rows=rows, labels=labels, attributes=attributes)


@dataclass(frozen=True)
class SourceRows:
    """The R rows that graphs were read from, with those that could not be read."""

    graph: np.ndarray  # (R,) number of each row's graph, -1 where there is none
    columns: dict[str, np.ndarray] = field(default_factory=dict)  # of a table, (R,) each
    reasons: tuple[
        str, ...
    ] = ()  # (R,) why a row has no graph, "" where it has one; empty if all must have one

    def of_graphs(self, start: int, stop: int) -> "SourceRows":
        """The rows of graphs from `start` up to `stop`; every row must have a graph, in order."""
        columns = {name: values[start:stop] for name, values in self.columns.items()}
        return SourceRows(self.graph[start:stop] - start, columns)


@dataclass(frozen=True)
class GraphArrays:
    """N nodes, E directed edges and G graphs as numpy arrays; all numbers start at 0."""

    node_graph: np.ndarray  # (N,) the graph of each node, non-decreasing
    src: np.ndarray  # (E,) source node of each edge, numbered across all graphs
    dst: np.ndarray  # (E,) target node of each edge
    graphs: int  # G
    targets: np.ndarray | None = None  # (G, T) integers, real numbers or strings, None where missing
    target_names: tuple[str, ...] = ("label",)  # (T,)
    task: TaskOption = "auto"  # what the source says of its targets; "auto": nothing
    nodes: RawColumns = field(default_factory=RawColumns)
    edges: RawColumns = field(default_factory=RawColumns)
    warnings: tuple[str, ...] = ()  # what the reader changed in the data
    ids: tuple[str, ...] = ()  # (G,) name of each graph in its source; default: its number
    splits: tuple[str, ...] = ()  # (G,) split name or fold number of each graph, where the source has one
    smiles: tuple[str, ...] = ()  # (G,) SMILES string of each molecule
    skipped: tuple[str, ...] = ()  # entries that could not be read, each with its place and reason
    lines: tuple[int, ...] = ()  # (G,) line of each graph in its file, for messages
    rows: SourceRows | None = None  # what the graphs were read from, for prediction

    def __post_init__(self) -> None:
        if not self.ids:
            object.__setattr__(self, "ids", tuple(map(str, range(self.graphs))))
        for name, rows in (("nodes", len(self.node_graph)), ("edges", len(self.src))):
            object.__setattr__(self, name, replace(getattr(self, name), rows=rows))

    def chunks(self, size: int) -> Iterator["GraphArrays"]:
        """The graphs in order, at most `size` at a time; warnings and skipped entries go with the first chunk."""
        edge_graph = self.node_graph[self.src]
        edges_by_graph = np.argsort(edge_graph, kind="stable")
        first_node = offsets_of(np.bincount(self.node_graph, minlength=self.graphs))
        first_edge = offsets_of(np.bincount(edge_graph, minlength=self.graphs))
        for start in range(0, self.graphs, size):
            stop = min(start + size, self.graphs)
            nodes = slice(first_node[start], first_node[stop])
            edges = edges_by_graph[first_edge[start] : first_edge[stop]]
            yield replace(
                self,
                node_graph=self.node_graph[nodes] - start,
                src=self.src[edges] - first_node[start],
                dst=self.dst[edges] - first_node[start],
                graphs=stop - start,
                targets=None if self.targets is None else self.targets[start:stop],
                nodes=self.nodes.take(nodes, nodes.stop - nodes.start),
                edges=self.edges.take(edges, len(edges)),
                warnings=self.warnings if start == 0 else (),
                ids=self.ids[start:stop],
                splits=self.splits[start:stop],
                smiles=self.smiles[start:stop],
                skipped=self.skipped if start == 0 else (),
                lines=self.lines[start:stop],
                rows=self.rows and self.rows.of_graphs(start, stop),
            )

    def take(self, chosen: np.ndarray) -> "GraphArrays":
        """The graphs for which the mask `chosen` (G,) is true."""
        nodes = chosen[self.node_graph]
        edges = nodes[self.src]
        number = np.cumsum(nodes) - 1  # of each node among those that remain
        per_graph: dict[str, Any] = {
            name: tuple(value for value, kept in zip(getattr(self, name), chosen, strict=True) if kept)
            for name in ("ids", "splits", "smiles", "lines")
            if getattr(self, name)
        }
        return replace(
            self,
            node_graph=(np.cumsum(chosen) - 1)[self.node_graph[nodes]],
            src=number[self.src[edges]],
            dst=number[self.dst[edges]],
            graphs=int(chosen.sum()),
            targets=None if self.targets is None else self.targets[chosen],
            nodes=self.nodes.take(nodes, int(nodes.sum())),
            edges=self.edges.take(edges, int(edges.sum())),
            **per_graph,
        )

    def locate(self, graph: int) -> str:
        """The place of a graph, for messages."""
        return f"line {self.lines[graph]}" if self.lines else f"graph {self.ids[graph]}"

    def with_warning(self, message: str) -> "GraphArrays":
        return replace(self, warnings=(*self.warnings, message))


ReadChunk: TypeAlias = Callable[[], GraphArrays]  # it can be sent to another process


def arrange_edges(arrays: GraphArrays, symmetric: bool = True, self_loops: bool = False) -> GraphArrays:
    """Group edges by graph, remove self-loops unless `self_loops`, and add missing reverse edges if `symmetric`.

    A reverse edge (v, u) gets the label and attributes of (u, v). It is added only if (v, u) does not occur at all, so
    files that list both directions stay as they are and parallel edges remain. A warning is added if some edges have
    a reverse and others do not.
    """
    src, dst = arrays.src, arrays.dst
    rows = np.arange(len(src))
    if not self_loops and (loops := src == dst).any():
        arrays = arrays.with_warning(f"{loops.sum()} self-loop(s) removed")
        rows = rows[~loops]
    ends = np.stack([src[rows], dst[rows]])
    if symmetric:
        nodes = len(arrays.node_graph)
        one_way = ~np.isin(ends[1] * nodes + ends[0], ends[0] * nodes + ends[1])
        if one_way.any():
            if not one_way.all():
                both = f"{(~one_way).sum()} edge(s) are listed in both directions"
                arrays = arrays.with_warning(f"reverse edge added to {one_way.sum()} one-way edge(s); {both}")
            rows = np.concatenate([rows, rows[one_way]])
            ends = np.concatenate([ends, ends[::-1, one_way]], axis=1)
    order = np.argsort(arrays.node_graph[ends[0]], kind="stable")
    rows, (src, dst) = rows[order], ends[:, order]
    return replace(arrays, src=src, dst=dst, edges=arrays.edges.take(rows, len(rows)))


def concat_columns(parts: Sequence[RawColumns]) -> RawColumns:
    """Coded columns with the same names as one; parts without rows may have no columns."""
    filled = [part for part in parts if part.rows]
    if not filled:
        return RawColumns()
    merged, codes = [], []
    for columns in zip(*(part.columns()[1] for part in filled), strict=True):
        known: dict[int | str, int] = {}
        numbers = []
        for column in columns:
            assert isinstance(column, CodedColumn)
            table = np.array([known.setdefault(value, len(known)) for value in column.values], dtype=np.int32)
            numbers.append(table[column.codes])
        merged.append(tuple(known))
        codes.append(np.concatenate(numbers).astype(np.min_scalar_type(len(known))))
    return RawColumns(
        labels=np.stack(codes, axis=1), label_names=filled[0].label_names, label_values=tuple(merged)
    )


def concat_arrays(parts: Sequence[GraphArrays]) -> GraphArrays:
    """The graphs of several arrays with coded columns, without targets, names and what they were read from."""
    graphs = offsets_of(np.array([part.graphs for part in parts]))
    nodes = offsets_of(np.array([part.nodes.rows for part in parts]))

    def joined(name: str, starts: np.ndarray) -> np.ndarray:
        arrays = (getattr(part, name) + start for part, start in zip(parts, starts, strict=False))
        return np.concatenate([np.zeros(0, dtype=np.int64), *arrays])

    return GraphArrays(
        node_graph=joined("node_graph", graphs),
        src=joined("src", nodes),
        dst=joined("dst", nodes),
        graphs=int(graphs[-1]),
        nodes=concat_columns([part.nodes for part in parts]),
        edges=concat_columns([part.edges for part in parts]),
    )


def unique_labels(values: Column) -> tuple[list[int | str], np.ndarray]:
    """Distinct labels in order, integers before strings, and the index of each value among them, (n,) int64."""
    if isinstance(values, CodedColumn):
        present = np.flatnonzero(np.bincount(values.codes, minlength=len(values.values)))
        ordered, rank = unique_labels(np.asarray(CodedColumn(present, values.values)))
        ranks = np.zeros(len(values.values), dtype=np.int64)
        ranks[present] = rank
        return ordered, ranks[values.codes]
    if values.dtype.kind in "iu":
        numbers, index = np.unique(values, return_inverse=True)
        return numbers.tolist(), index
    ordered = sorted(set(values.tolist()), key=lambda value: (isinstance(value, str), value))
    position = {value: i for i, value in enumerate(ordered)}
    return ordered, np.array([position[value] for value in values.tolist()], dtype=np.int64)
