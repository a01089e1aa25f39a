"""Pairs of graphs that are not isomorphic, in rising difficulty, with exact knowledge of who distinguishes them.

| category | the two graphs differ in | distinguished by |
|---|---|---|
| structure | structure | 1-WL, and all that follow |
| edge counts | how often an edge label occurs | the counts of edge labels |
| edge positions | the edge labels around the nodes | 1-WL with Σ e of each node: EGIN |
| edge to neighbour | which edge leads to which neighbour | E-WL |
| beyond E-WL | what no refinement here sees | an exact search |
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.prepare import from_arrays
from egin_dgl.ewl.inputs import GraphSet, as_graph_set, concatenate
from egin_dgl.ewl.isomorphism import distinguish
from egin_dgl.ewl.refinement import check_integer

NODE_LABELS, EDGE_LABELS = 2, 3
MIN_NODES = 6
MAX_DEPTH = (
    3  # within which refinement distinguishes a pair, if at all: networks of three layers can do the same
)


@dataclass(frozen=True)
class GraphPair:
    category: str
    number: int  # within the category; graphs grow with it
    first: GraphSet
    second: GraphSet


class Drawn(NamedTuple):
    """An undirected graph: n nodes, m edges."""

    node_labels: np.ndarray  # (n,)
    ends: np.ndarray  # (m, 2)
    edge_labels: np.ndarray  # (m,)

    def as_graph(self) -> GraphSet:
        src, dst = np.concatenate([self.ends, self.ends[:, ::-1]]).T
        return as_graph_set((src, dst, len(self.node_labels)), self.node_labels, np.tile(self.edge_labels, 2))


def make_pairs(count: int = 6, seed: int = 0) -> list[GraphPair]:
    """`count` pairs of each category; the same arguments give the same pairs.

    Every pair is checked: the references that should distinguish it do so, within MAX_DEPTH rounds, and the others do not.

    >>> [pair.category for pair in make_pairs(count=1)]
    ['structure', 'edge counts', 'edge positions', 'edge to neighbour', 'beyond E-WL']
    """
    check_integer("count", count, 1)
    check_integer("seed", seed, 0)
    pairs = []
    for place, (category, draw) in enumerate(CATEGORIES.items()):
        rng = np.random.default_rng([seed, place])
        for number in range(count):
            pair = None
            while pair is None or exact_verdicts(pair, MAX_DEPTH) != EXPECTED[category]:
                first, second = draw(rng, MIN_NODES + number)
                pair = GraphPair(category, number, first.as_graph(), second.as_graph())
            pairs.append(pair)
    return pairs


def exact_verdicts(pair: GraphPair, max_depth: int | None = None) -> dict[str, bool | None]:
    """Which references distinguish the pair, each by refinement until the colours are stable, the last by an exact search.

    "Σ e" is 1-WL with the sum of the edge labels of a node, one-hot, in its label: an upper bound of EGIN and EGIN-E. Where
    refinement needs more than `max_depth` rounds, the verdict is None.
    """
    graphs = pair.first, pair.second
    verdicts = {
        "1-WL": distinguish(*graphs, "1-wl"),
        "Σ e": distinguish(*graphs, "1-wl", node_labels=tuple(map(labels_with_edge_sums, graphs))),
        "E-WL": distinguish(*graphs, "e-wl", exact=True),
    }
    found: dict[str, bool | None] = {}
    for name, verdict in verdicts.items():
        late = verdict.distinguished and max_depth is not None and verdict.depth > max_depth
        found[name] = None if late else verdict.distinguished
    return found | {"exact": not verdicts["E-WL"].isomorphic}


def labels_with_edge_sums(graph: GraphSet) -> np.ndarray:
    """Node labels and, next to them, how often each edge label occurs around the node: (N, 1 + labels)."""
    counts = np.zeros((graph.num_nodes, EDGE_LABELS), dtype=np.int64)
    np.add.at(counts, (graph.dst, graph.edge_labels[:, 0]), 1)
    return np.concatenate([graph.node_labels, counts], axis=1)


def permute_nodes(graph: GraphSet, rng: np.random.Generator) -> GraphSet:
    """The same graph with its nodes and edges in another order."""
    place, order = rng.permutation(graph.num_nodes), rng.permutation(len(graph.src))
    ends = place[graph.src[order]], place[graph.dst[order]]
    return as_graph_set(
        (*ends, graph.num_nodes), graph.node_labels[place.argsort()], graph.edge_labels[order]
    )


def pairs_to_dataset(graphs: Sequence[GraphSet]) -> GraphDataset:
    """Graphs of pairs, first and second in turn, as a dataset with the classes 0 and 1 and one-hot labels."""
    joined = concatenate(graphs)
    arrays = GraphArrays(
        node_graph=joined.graph_of_node,
        src=joined.src,
        dst=joined.dst,
        graphs=len(joined),
        targets=(np.arange(len(joined)) % 2).astype(object)[:, None],
        nodes=RawColumns(labels=joined.node_labels),
        edges=RawColumns(labels=joined.edge_labels),
    )
    return from_arrays(arrays, "pairs")


def _random_graph(rng: np.random.Generator, nodes: int) -> Drawn:
    """A connected graph: a random tree and half as many edges again."""
    tree = [(int(rng.integers(node)), node) for node in range(1, nodes)]
    others = [(i, j) for j in range(nodes) for i in range(j) if (i, j) not in tree]
    extra = [others[k] for k in rng.choice(len(others), nodes // 2, replace=False)]
    return _label(rng, nodes, np.array(tree + extra))


def _label(rng: np.random.Generator, nodes: int, ends: np.ndarray) -> Drawn:
    return Drawn(rng.integers(NODE_LABELS, size=nodes), ends, rng.integers(EDGE_LABELS, size=len(ends)))


def _switch_ends(rng: np.random.Generator, nodes: int) -> tuple[Drawn, Drawn]:
    """Two edges a–b and c–d become a–d and c–b: all degrees and labels stay."""
    graph = _random_graph(rng, nodes)
    ends = graph.ends.copy()
    one, two = rng.choice(len(ends), 2, replace=False)
    ends[[one, two], 1] = ends[[two, one], 1]
    undirected = {tuple(sorted(pair)) for pair in ends.tolist() if pair[0] != pair[1]}
    is_simple = len(undirected) == len(ends)  # no loops and no parallel edges
    return graph, graph._replace(ends=ends) if is_simple else graph


def _change_label(rng: np.random.Generator, nodes: int) -> tuple[Drawn, Drawn]:
    """One edge has another label."""
    graph = _random_graph(rng, nodes)
    labels = graph.edge_labels.copy()
    edge = rng.integers(len(labels))
    labels[edge] = (labels[edge] + 1) % EDGE_LABELS
    return graph, graph._replace(edge_labels=labels)


def _exchange_labels(rng: np.random.Generator, nodes: int) -> tuple[Drawn, Drawn]:
    """Two edges exchange their labels: their counts stay."""
    graph = _random_graph(rng, nodes)
    labels = graph.edge_labels.copy()
    one, two = rng.choice(len(labels), 2, replace=False)
    labels[[one, two]] = labels[[two, one]]
    return graph, graph._replace(edge_labels=labels)


def _alternate(rng: np.random.Generator, nodes: int) -> tuple[Drawn, Drawn]:
    """Two labels that alternate along an even ring are exchanged: every node keeps its neighbours and its edge labels."""
    ring = 2 * int(rng.integers(2, nodes // 2 + 1))
    cycle = [(i, (i + 1) % ring) for i in range(ring)]
    pendant = [(int(rng.integers(node)), node) for node in range(ring, nodes)]
    graph = _label(rng, nodes, np.array(cycle + pendant))
    two = rng.choice(EDGE_LABELS, 2, replace=False)
    first, second = graph.edge_labels.copy(), graph.edge_labels.copy()
    first[:ring], second[:ring] = np.resize(two, ring), np.resize(two[::-1], ring)
    return graph._replace(edge_labels=first), graph._replace(edge_labels=second)


def _cover_twice(rng: np.random.Generator, nodes: int) -> tuple[Drawn, Drawn]:
    """Two random double covers of one graph: refinement gives a node the colour of the node that it covers."""
    base = _random_graph(rng, nodes // 2 + 1)
    first, second = (_double_cover(base, rng.integers(2, size=len(base.ends))) for _ in range(2))
    return first, second


def _double_cover(base: Drawn, crossed: np.ndarray) -> Drawn:
    """Two copies of a graph, in which the edges marked by `crossed` lead to the other copy."""
    nodes, (source, target) = len(base.node_labels), base.ends.T
    ends = [np.stack([source + nodes * copy, target + nodes * (copy ^ crossed)], axis=1) for copy in (0, 1)]
    return Drawn(np.tile(base.node_labels, 2), np.concatenate(ends), np.tile(base.edge_labels, 2))


CATEGORIES: dict[str, Callable[[np.random.Generator, int], tuple[Drawn, Drawn]]] = {
    "structure": _switch_ends,
    "edge counts": _change_label,
    "edge positions": _exchange_labels,
    "edge to neighbour": _alternate,
    "beyond E-WL": _cover_twice,
}
EXPECTED: dict[str, dict[str, bool | None]] = {
    "structure": {"1-WL": True, "Σ e": True, "E-WL": True, "exact": True},
    "edge counts": {"1-WL": False, "Σ e": True, "E-WL": True, "exact": True},
    "edge positions": {"1-WL": False, "Σ e": True, "E-WL": True, "exact": True},
    "edge to neighbour": {"1-WL": False, "Σ e": False, "E-WL": True, "exact": True},
    "beyond E-WL": {"1-WL": False, "Σ e": False, "E-WL": False, "exact": True},
}
