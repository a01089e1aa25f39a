"""The colours of one set of graphs as a table of signatures, to look up the colours of other graphs."""

from dataclasses import dataclass

import numpy as np

from egin_dgl.data.ragged import gather_rows, offsets_of
from egin_dgl.errors import DataError
from egin_dgl.ewl.inputs import GraphSet
from egin_dgl.ewl.labels import as_labels, concat_labels, label_values, rank_labels
from egin_dgl.ewl.ranking import combine, multiset_slots, sorting_order
from egin_dgl.ewl.refinement import Refinement, check_method, refine

UNSEEN = -1
# E-WL-EA has the partitions of E-WL (Theorem 2), so its table would only be larger.
TABLE_METHODS = ("1-wl", "e-wl")


@dataclass(frozen=True, eq=False)
class Signatures:
    """K signatures of one depth: own colour and (neighbour, edge) tuples, in the colours of the previous depth."""

    own: np.ndarray  # (K,)
    offsets: np.ndarray  # (K + 1,) first tuple of each signature
    neighbor: np.ndarray  # (M,) colours
    edge: np.ndarray  # (M,) ranks of edge labels

    @classmethod
    def gather(cls, nodes: np.ndarray, in_edges: "InEdges", colors: np.ndarray) -> "Signatures":
        """The signatures of the given nodes, from the colours (N,) of the previous depth."""
        index, offsets = gather_rows(in_edges.offsets, nodes)
        return cls(colors[nodes], offsets, colors[in_edges.src[index]], in_edges.edge[index])

    def __len__(self) -> int:
        return len(self.own)


@dataclass(frozen=True, eq=False)
class InEdges:
    """Source and label rank of each edge, in the order of the target nodes."""

    offsets: np.ndarray  # (N + 1,)
    src: np.ndarray
    edge: np.ndarray

    @classmethod
    def build(cls, graphs: GraphSet, edge: np.ndarray) -> "InEdges":
        order = sorting_order(graphs.dst, graphs.num_nodes)
        degree = np.bincount(graphs.dst, minlength=graphs.num_nodes)
        return cls(offsets_of(degree), graphs.src[order], edge[order])


class ColorTable:
    """The colours of fitted graphs at depths 0..depth, and an exact lookup for other graphs.

    The colour of a node is the fitted colour with the same signature. It is UNSEEN if there is none, and then at all
    later depths also for the nodes that see it.
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
        """Number of colours at each depth, from depth 0."""
        return [len(self.node_labels), *map(len, self.levels)]

    @classmethod
    def fit(cls, graphs: GraphSet, method: str, depth: int) -> tuple["ColorTable", Refinement]:
        """The table of these graphs, and their refinement."""
        check_method(method, TABLE_METHODS)
        refinement = refine(graphs, method, depth)
        edge_labels = _edge_labels(graphs, method)
        edge_ranks, edge_count = rank_labels(edge_labels)
        in_edges = InEdges.build(graphs, edge_ranks)
        levels = []
        for before, after in zip(refinement.colors[:-1], refinement.colors[1:], strict=True):
            holders = np.empty(int(after.max(initial=-1)) + 1, dtype=np.int64)
            holders[after] = np.arange(len(after))
            levels.append(Signatures.gather(holders, in_edges, before))
        first = refinement.colors[0]
        node_labels = label_values(graphs.node_labels, first, int(first.max(initial=-1)) + 1)
        edge_labels = label_values(edge_labels, edge_ranks, edge_count)
        return cls(method, node_labels, edge_labels, levels), refinement

    def lookup(self, graphs: GraphSet) -> list[np.ndarray]:
        """Colours (N,) of other graphs at each depth; -1 for unseen signatures."""
        colors = [_find(self.node_labels, graphs.node_labels, "node")]
        edge_ranks = _find(self.edge_labels, _edge_labels(graphs, self.method), "edge")
        in_edges = InEdges.build(graphs, edge_ranks)
        for level, size in zip(self.levels, self.sizes, strict=False):
            before = colors[-1]
            known = before != UNSEEN
            known[graphs.dst[(before[graphs.src] == UNSEEN) | (edge_ranks == UNSEEN)]] = False
            nodes = np.flatnonzero(known)
            after = np.full(graphs.num_nodes, UNSEEN)
            if len(nodes):
                new = Signatures.gather(nodes, in_edges, before)
                after[nodes] = _match(level, new, size, max(len(self.edge_labels), 1))
            colors.append(after)
        return colors

    def to_dict(self) -> dict:
        """The table as a JSON object."""
        levels = [{key: value.tolist() for key, value in vars(level).items()} for level in self.levels]
        labels = {"node_labels": self.node_labels, "edge_labels": self.edge_labels}
        return {
            "method": self.method,
            "levels": levels,
            **{key: {"width": _width(value), "values": value.tolist()} for key, value in labels.items()},
        }

    @classmethod
    def from_dict(cls, state: dict) -> "ColorTable":
        """Restore the result of `to_dict`."""
        try:
            levels = [
                Signatures(**{key: np.asarray(value, dtype=np.int64) for key, value in level.items()})
                for level in state["levels"]
            ]
            nodes, edges = _restore(state["node_labels"], "node"), _restore(state["edge_labels"], "edge")
            return cls(state["method"], nodes, edges, levels)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"not a table of colours: {error!r}") from None


def _edge_labels(graphs: GraphSet, method: str) -> np.ndarray:
    """The edge labels that a method sees."""
    return graphs.edge_labels if method == "e-wl" else as_labels(None, len(graphs.src), "edge")


def _width(labels: np.ndarray) -> int | None:
    return labels.shape[1] if labels.ndim == 2 else None


def _restore(state: dict, owner: str) -> np.ndarray:
    values, width = state["values"], state["width"]
    if width is None:
        return as_labels(values, len(values), owner)
    return np.asarray(values, dtype=None if width else np.int64).reshape(len(values), width)


def _find(table: np.ndarray, labels: np.ndarray, owner: str) -> np.ndarray:
    """Index of each label in the table, UNSEEN where it is not there."""
    if len(table) == 0 or len(labels) == 0:
        return np.full(len(labels), UNSEEN)
    ranks, count = rank_labels(concat_labels([table, labels], owner))
    return _match_numbers(ranks, len(table), count)


def _match(table: Signatures, new: Signatures, colors: int, edges: int) -> np.ndarray:
    """Index of each new signature in the table, UNSEEN where it is not there: both are ranked together."""
    own, neighbor, edge = (
        np.concatenate([getattr(part, field) for part in (table, new)])
        for field in ("own", "neighbor", "edge")
    )
    offsets = np.concatenate([table.offsets, table.offsets[-1] + new.offsets[1:]])
    tuples, base = combine(neighbor, edge, colors, edges)
    slots = multiset_slots(own, colors, offsets, tuples, base)
    return _match_numbers(slots, len(table), len(slots))


def _match_numbers(numbers: np.ndarray, known: int, bound: int) -> np.ndarray:
    """For each item from `known` on, the item before `known` with the same number, or UNSEEN."""
    holder = np.full(bound, UNSEEN)
    holder[numbers[:known]] = np.arange(known)
    return holder[numbers[known:]]
