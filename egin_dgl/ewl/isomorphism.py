"""Graph isomorphism: colour refinement, and an exact search where it does not decide."""

import operator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from egin_dgl.errors import DataError
from egin_dgl.ewl.inputs import GraphSet, as_graph_set, concatenate
from egin_dgl.ewl.labels import rank_labels
from egin_dgl.ewl.refinement import check_method, color_rounds, stable_colors


class Witness(NamedTuple):
    """A colour with different counts of nodes in the two graphs."""

    color: int
    first: int
    second: int


@dataclass(frozen=True, repr=False)
class Verdict:
    """Result of `distinguish`."""

    method: str
    isomorphic: bool | None  # by refinement or an exact search; None if undecided
    depth: int  # the first that distinguishes the graphs, or the stable depth
    witnesses: tuple[Witness, ...] = ()  # colours of that depth whose counts differ

    @property
    def distinguished(self) -> bool:
        """Whether refinement distinguishes the graphs."""
        return bool(self.witnesses)

    def __repr__(self) -> str:
        return f"Verdict({self})"

    def __str__(self) -> str:
        name = self.method.upper()
        if self.distinguished:
            shown = ", ".join(
                f"colour {w.color} on {w.first} and {w.second} nodes" for w in self.witnesses[:4]
            )
            shown += f" and {len(self.witnesses) - 4} more" if len(self.witnesses) > 4 else ""
            return f"not isomorphic: {name} distinguishes them at depth {self.depth}, {shown}"
        equal = f"{name} does not distinguish them (stable at depth {self.depth})"
        if self.isomorphic is None:
            return f"undecided: {equal}; an exact search would decide"
        if self.isomorphic:
            return f"isomorphic: {equal}, an exact search matches them"
        return f"not isomorphic: {equal}, an exact search does"


def distinguish(
    first: object,
    second: object,
    method: str = "e-wl",
    exact: bool = False,
    node_labels: tuple | None = None,
    edge_labels: tuple | None = None,
    decimals: int | None = None,
) -> Verdict:
    """Refine two graphs together until their colour histograms differ or the colours are stable.

    Different histograms prove that the graphs are not isomorphic; equal histograms prove nothing.

    Args:
        first, second: Graphs that `as_graph_set` reads.
        method: "1-wl", "e-wl" or "e-wl-ea".
        exact: Decide the case of equal histograms by an exact search, which respects node and edge labels.
        node_labels, edge_labels: Pairs, the labels of the first and of the second graph.
        decimals: Round real labels first.

    >>> ring = ([0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3], 4)
    >>> distinguish(ring, ring, edge_labels=(["-", "=", "-", "="] * 2, ["=", "=", "-", "-"] * 2)).distinguished
    True
    >>> distinguish(ring, ring, "1-wl", exact=True)
    Verdict(isomorphic: 1-WL does not distinguish them (stable at depth 0), an exact search matches them)
    """
    check_method(method)
    labels = zip(node_labels or (None, None), edge_labels or (None, None), strict=True)
    pair = concatenate(
        [as_graph_set(g, n, e, decimals) for g, (n, e) in zip((first, second), labels, strict=True)]
    )
    if len(pair) != 2:
        raise DataError(f"distinguish takes two single graphs, got {len(pair)} in all")
    depth = 0
    for depth, colors in enumerate(color_rounds(pair, method)):
        if witnesses := _witnesses(pair, colors):
            return Verdict(method, False, depth, witnesses)
    return Verdict(method, Matcher(pair).isomorphic(0, 1) if exact else None, depth)


def _witnesses(pair: GraphSet, colors: np.ndarray) -> tuple[Witness, ...]:
    middle, count = pair.node_offsets[1], int(colors.max(initial=-1)) + 1
    ones, twos = (np.bincount(part, minlength=count) for part in (colors[:middle], colors[middle:]))
    return tuple(Witness(int(c), int(ones[c]), int(twos[c])) for c in np.flatnonzero(ones != twos))


class Matcher:
    """Exact isomorphism of labelled multigraphs within a set.

    Every isomorphism preserves the stable E-WL colours. If the colours of a graph are all different, there is one
    candidate mapping, whose edges are compared; otherwise VF2 searches among nodes of equal colour. `colors` are the
    stable E-WL colours (N,) of the set, if they are known.
    """

    def __init__(self, graphs: GraphSet, colors: np.ndarray | None = None):
        self.graphs, self.colors = graphs, stable_colors(graphs) if colors is None else colors
        self.edge_ranks, _ = rank_labels(graphs.edge_labels)
        self.edge_order, self.edge_offsets = graphs.edges_by_graph

    def isomorphic(self, i: int, j: int) -> bool:
        """Whether the graphs i and j of the set are isomorphic."""
        (colors_i, edges_i), (colors_j, edges_j) = self._graph(i), self._graph(j)
        ordered = np.sort(colors_i)
        if len(edges_i) != len(edges_j) or not np.array_equal(ordered, np.sort(colors_j)):
            return False
        if (ordered[1:] != ordered[:-1]).all():
            return np.array_equal(_colored_edges(colors_i, edges_i), _colored_edges(colors_j, edges_j))
        return _search((colors_i, edges_i), (colors_j, edges_j))

    def _graph(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Colours (n,) and edges (m, 3) as source, target and label of one graph, nodes numbered from 0."""
        first, last = self.graphs.node_offsets[index : index + 2]
        edges = self.edge_order[self.edge_offsets[index] : self.edge_offsets[index + 1]]
        ends = (self.graphs.src[edges] - first, self.graphs.dst[edges] - first, self.edge_ranks[edges])
        return self.colors[first:last], np.stack(ends, axis=1)


def _colored_edges(colors: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The multiset of (source colour, target colour, edge label), as sorted rows."""
    triples = np.stack([colors[edges[:, 0]], colors[edges[:, 1]], edges[:, 2]], axis=1)
    return triples[np.lexsort(triples.T)]


def _search(*graphs: tuple[np.ndarray, np.ndarray]) -> bool:
    """VF2 on simple directed graphs: parallel edges become one label, self-loops part of the node label."""
    import rustworkx as rx

    first, second = rx.PyDiGraph(), rx.PyDiGraph()
    for graph, (colors, edges) in zip((first, second), graphs, strict=True):
        labels_between: dict[tuple[int, int], list[int]] = {}
        for source, target, label in edges.tolist():
            labels_between.setdefault((source, target), []).append(label)
        joined = {ends: tuple(sorted(labels)) for ends, labels in labels_between.items()}
        graph.add_nodes_from([(color, joined.pop((i, i), ())) for i, color in enumerate(colors.tolist())])
        graph.add_edges_from([(*ends, labels) for ends, labels in joined.items()])
    return rx.is_isomorphic(first, second, operator.eq, operator.eq, id_order=False)
