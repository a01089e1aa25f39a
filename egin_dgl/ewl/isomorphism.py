"""Are two graphs the same? Colour refinement answers fast and often; an exact search settles the rest."""

import operator
from dataclasses import dataclass

import numpy as np

from egin_dgl.errors import DataError
from egin_dgl.ewl.inputs import GraphSet, as_graph_set, concatenate
from egin_dgl.ewl.labels import rank_labels
from egin_dgl.ewl.rounds import check_method, color_rounds, stable_colors


@dataclass(frozen=True)
class Witness:
    """A colour that the two graphs have on different numbers of nodes."""

    color: int
    first: int
    second: int


@dataclass(frozen=True, repr=False)
class Verdict:
    """isomorphic is False when the graphs are told apart, True when an exact search matched them, else None.

    depth is the first depth that tells them apart (witnesses are its colours), or the depth at which refinement
    became stable without doing so.
    """

    method: str
    isomorphic: bool | None
    depth: int
    witnesses: tuple[Witness, ...] = ()

    @property
    def distinguished(self) -> bool:
        """Whether refinement alone showed that the graphs differ."""
        return bool(self.witnesses)

    def __repr__(self) -> str:
        return f"Verdict({self})"

    def __str__(self) -> str:
        name = self.method.upper()
        if self.distinguished:
            shown = [f"colour {w.color} on {w.first} and {w.second} nodes" for w in self.witnesses[:4]]
            more = f" and {len(self.witnesses) - 4} more" if len(self.witnesses) > 4 else ""
            return f"not isomorphic: {name} tells them apart at depth {self.depth}, {', '.join(shown)}{more}"
        same = f"{name} does not tell them apart (stable at depth {self.depth})"
        if self.isomorphic is None:
            return f"not told apart: {same}; an exact search would decide"
        return (
            f"isomorphic: {same}, an exact search matches them"
            if self.isomorphic
            else (f"not isomorphic: {same}, an exact search does")
        )


def distinguish(
    first: object,
    second: object,
    method: str = "e-wl",
    exact: bool = False,
    node_labels: tuple | None = None,
    edge_labels: tuple | None = None,
    decimals: int | None = None,
) -> Verdict:
    """Refine the disjoint union of two graphs, depth by depth, until that tells them apart or is stable.

    Different histograms prove that the graphs differ; equal ones prove nothing. With exact=True the second case is
    decided, always with node and edge labels respected: 1-WL may not tell apart what an exact search does.
    node_labels and edge_labels, where given, are pairs: those of the first and of the second graph.
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
    """Exact isomorphism within a set of graphs, node and edge labels and parallel edges respected.

    Every isomorphism keeps the stable E-WL colours. Where they are all different within a graph they leave one
    candidate, whose edges are compared; otherwise VF2 searches among the nodes of equal colour.
    """

    def __init__(self, graphs: GraphSet, colors: np.ndarray | None = None):
        """colors: the stable E-WL colours (N,) of the set, if they are already there."""
        colors = stable_colors(graphs) if colors is None else colors
        self.graphs, self.colors = graphs, colors
        self.edge_ranks, _ = rank_labels(graphs.edge_labels)
        self.edge_order, self.edge_offsets = graphs.edges_by_graph

    def isomorphic(self, i: int, j: int) -> bool:
        """Whether the graphs i and j of the set are isomorphic."""
        (colors_i, edges_i), (colors_j, edges_j) = self._graph(i), self._graph(j)
        ordered = np.sort(colors_i)
        if len(edges_i) != len(edges_j) or not np.array_equal(ordered, np.sort(colors_j)):
            return False
        if (ordered[1:] != ordered[:-1]).all():
            return np.array_equal(_named_edges(colors_i, edges_i), _named_edges(colors_j, edges_j))
        return _search(colors_i, edges_i, colors_j, edges_j)

    def _graph(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Colours (n,) and edges (m, 3) as source, target and label of one graph, nodes numbered from 0."""
        first, last = self.graphs.node_offsets[index : index + 2]
        edges = self.edge_order[self.edge_offsets[index] : self.edge_offsets[index + 1]]
        ends = (self.graphs.src[edges] - first, self.graphs.dst[edges] - first, self.edge_ranks[edges])
        return self.colors[first:last], np.stack(ends, axis=1)


def _named_edges(colors: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The multiset of edges with their ends named by colour, as sorted rows."""
    named = np.stack([colors[edges[:, 0]], colors[edges[:, 1]], edges[:, 2]], axis=1)
    return named[np.lexsort(named.T)]


# Names of the nodes, and the labels between each joined pair of them.
Bundled = tuple[list[tuple], dict[tuple[int, int], tuple]]


def _bundle(colors: np.ndarray, edges: np.ndarray) -> Bundled:
    """Node names and one bundle for each joined pair of nodes, so that no matcher sees a multigraph or a loop."""
    bundles: dict[tuple[int, int], list[int]] = {}
    for source, target, label in edges.tolist():
        bundles.setdefault((source, target), []).append(label)
    joined = {ends: tuple(sorted(labels)) for ends, labels in bundles.items()}
    nodes = [(color, joined.pop((node, node), ())) for node, color in enumerate(colors.tolist())]
    return nodes, joined


def _search(colors_i: np.ndarray, edges_i: np.ndarray, colors_j: np.ndarray, edges_j: np.ndarray) -> bool:
    """VF2 on directed graphs, by rustworkx where it is installed, else by networkx."""
    first, second = _bundle(colors_i, edges_i), _bundle(colors_j, edges_j)
    try:
        return _search_fast(first, second)
    except ImportError:
        return _search_slow(first, second)


def _search_fast(first: Bundled, second: Bundled) -> bool:
    import rustworkx as rx

    def build(side: Bundled) -> rx.PyDiGraph:
        graph = rx.PyDiGraph()
        graph.add_nodes_from(side[0])
        graph.add_edges_from([(a, b, labels) for (a, b), labels in side[1].items()])
        return graph

    return rx.is_isomorphic(build(first), build(second), operator.eq, operator.eq, id_order=False)


def _search_slow(first: Bundled, second: Bundled) -> bool:
    import networkx as nx

    def build(side: Bundled) -> nx.DiGraph:
        graph = nx.DiGraph()
        graph.add_nodes_from((node, {"name": name}) for node, name in enumerate(side[0]))
        graph.add_edges_from((a, b, {"name": labels}) for (a, b), labels in side[1].items())
        return graph

    return nx.is_isomorphic(build(first), build(second), node_match=operator.eq, edge_match=operator.eq)
