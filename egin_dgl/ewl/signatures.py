"""The colours of one set of graphs, kept as a table of signatures, so that other graphs can be given them too."""

from dataclasses import dataclass

import numpy as np

from egin_dgl.data.ragged import gather_rows, offsets_of
from egin_dgl.errors import DataError
from egin_dgl.ewl.inputs import GraphSet
from egin_dgl.ewl.labels import as_labels, distinct_labels, join_labels, rank_labels
from egin_dgl.ewl.ranking import combine, sorting_order
from egin_dgl.ewl.refinement import Refinement, refine
from egin_dgl.ewl.rounds import check_method
from egin_dgl.ewl.rows import multiset_slots

UNSEEN = -1
# By Theorem 2 E-WL-EA has the partitions of E-WL, so a table of its own would only be larger.
TABLE_METHODS = ("1-wl", "e-wl")


@dataclass(frozen=True, eq=False)
class Signatures:
    """K signatures of one depth: own colour, and Node-Edge tuples offsets[k]:offsets[k + 1], in colours one depth less."""

    own: np.ndarray  # (K,)
    offsets: np.ndarray  # (K + 1,)
    neighbor: np.ndarray  # (M,)
    edge: np.ndarray  # (M,) ranks of edge labels

    @classmethod
    def of_nodes(cls, nodes: np.ndarray, in_edges: "InEdges", colors: np.ndarray) -> "Signatures":
        """The signatures of the given nodes at the depth after `colors`."""
        places, offsets = gather_rows(in_edges.offsets, nodes)
        return cls(colors[nodes], offsets, colors[in_edges.src[places]], in_edges.edge[places])

    def __len__(self) -> int:
        return len(self.own)


@dataclass(frozen=True, eq=False)
class InEdges:
    """Edges of a set in the order of the node they end in, and a number for the label of each."""

    offsets: np.ndarray  # (N + 1,)
    src: np.ndarray
    edge: np.ndarray

    @classmethod
    def build(cls, graphs: GraphSet, edge: np.ndarray) -> "InEdges":
        order = sorting_order(graphs.dst, graphs.num_nodes)
        degree = np.bincount(graphs.dst, minlength=graphs.num_nodes)
        return cls(offsets_of(degree), graphs.src[order], edge[order])


class ColorTable:
    """All colours of the fitted graphs at depths 0..depth, and the exact lookup of other graphs' colours.

    The colour of another graph's node at depth l is the fitted colour whose signature equals the node's; UNSEEN
    where there is none, and so at all later depths for every node that sees it. Fitted graphs get the colours that
    `refine` gives them.
    """

    def __init__(
        self, method: str, node_labels: np.ndarray, edge_labels: np.ndarray, levels: list[Signatures]
    ):
        self.method = check_method(method, TABLE_METHODS)
        self.node_labels, self.edge_labels, self.levels = node_labels, edge_labels, levels

    @property
    def depth(self) -> int:
        return len(self.levels)

    @property
    def sizes(self) -> list[int]:
        """The number of colours at each depth, 0 first."""
        return [len(self.node_labels), *map(len, self.levels)]

    @classmethod
    def fit(cls, graphs: GraphSet, method: str, depth: int) -> tuple["ColorTable", Refinement]:
        """The table of these graphs, and their refinement."""
        check_method(method, TABLE_METHODS)
        refinement = refine(graphs, method, depth)
        # 1-WL sees no edge label, so its table must not depend on any.
        edge_labels = graphs.edge_labels if method == "e-wl" else as_labels(None, len(graphs.src), "edge")
        edge_ranks, edge_count = rank_labels(edge_labels)
        in_edges = InEdges.build(graphs, edge_ranks)
        levels = []
        for before, after in zip(refinement.colors[:-1], refinement.colors[1:], strict=True):
            holders = np.empty(int(after.max(initial=-1)) + 1, dtype=np.int64)
            holders[after] = np.arange(len(after))
            levels.append(Signatures.of_nodes(holders, in_edges, before))
        first = refinement.colors[0]
        node_labels = distinct_labels(graphs.node_labels, first, int(first.max(initial=-1)) + 1)
        return cls(
            method, node_labels, distinct_labels(edge_labels, edge_ranks, edge_count), levels
        ), refinement

    def lookup(self, graphs: GraphSet) -> list[np.ndarray]:
        """Colours (N,) of other graphs at each depth, UNSEEN (-1) where the fitted graphs have no such signature."""
        colors = [_find(self.node_labels, graphs.node_labels, "node")]
        edge_labels = (
            graphs.edge_labels if self.method == "e-wl" else as_labels(None, len(graphs.src), "edge")
        )
        edge_ranks = _find(self.edge_labels, edge_labels, "edge")
        in_edges = InEdges.build(graphs, edge_ranks)
        for level, size in zip(self.levels, self.sizes, strict=False):
            before = colors[-1]
            strange = np.zeros(graphs.num_nodes, dtype=bool)  # sees a colour or an edge that was never seen
            strange[graphs.dst[(before[graphs.src] == UNSEEN) | (edge_ranks == UNSEEN)]] = True
            nodes = np.flatnonzero((before != UNSEEN) & ~strange)
            after = np.full(graphs.num_nodes, UNSEEN)
            if len(nodes):
                new = Signatures.of_nodes(nodes, in_edges, before)
                after[nodes] = _match(level, new, size, max(len(self.edge_labels), 1))
            colors.append(after)
        return colors

    def to_dict(self) -> dict:
        """Plain lists, numbers and strings, for JSON."""
        levels = [{key: value.tolist() for key, value in vars(level).items()} for level in self.levels]
        labels = {"node_labels": self.node_labels, "edge_labels": self.edge_labels}
        return {
            "method": self.method,
            "levels": levels,
            **{key: {"width": _width(value), "values": value.tolist()} for key, value in labels.items()},
        }

    @classmethod
    def from_dict(cls, state: dict) -> "ColorTable":
        """The table that `to_dict` described."""
        try:
            levels = [
                Signatures(**{key: np.asarray(value, dtype=np.int64) for key, value in level.items()})
                for level in state["levels"]
            ]
            nodes, edges = _restore(state["node_labels"], "node"), _restore(state["edge_labels"], "edge")
            return cls(state["method"], nodes, edges, levels)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"this is not a table of colours: {error!r}") from None


def _width(labels: np.ndarray) -> int | None:
    return labels.shape[1] if labels.ndim == 2 else None


def _restore(state: dict, what: str) -> np.ndarray:
    values, width = state["values"], state["width"]
    if width is not None:
        return (
            np.asarray(values).reshape(len(values), width)
            if width
            else np.zeros((len(values), 0), dtype=np.int64)
        )
    return as_labels(values, len(values), what)


def _find(table: np.ndarray, labels: np.ndarray, what: str) -> np.ndarray:
    """The row of the table that equals each label, UNSEEN where none does."""
    if len(table) == 0 or len(labels) == 0:
        return np.full(len(labels), UNSEEN)
    ranks, count = rank_labels(join_labels([table, labels], what))
    return _by_number(ranks, len(table), count)


def _match(table: Signatures, new: Signatures, colors: int, edges: int) -> np.ndarray:
    """The signature of the table that equals each new one, UNSEEN where none does: both are ranked together."""
    own, neighbor, edge = (
        np.concatenate([getattr(part, field) for part in (table, new)])
        for field in ("own", "neighbor", "edge")
    )
    offsets = np.concatenate([table.offsets, table.offsets[-1] + new.offsets[1:]])
    tuples, base = combine(neighbor, edge, colors, edges)
    slots = multiset_slots(own, colors, offsets, tuples, base)
    return _by_number(slots, len(table), len(slots))


def _by_number(numbers: np.ndarray, known: int, bound: int) -> np.ndarray:
    """For items known.. on, the item before `known` that has the same number, UNSEEN where none has."""
    holder = np.full(bound, UNSEEN)
    holder[numbers[:known]] = np.arange(known)
    return holder[numbers[known:]]
