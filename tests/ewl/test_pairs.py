"""Generated pairs: what each category promises holds by independent references."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest

from egin_dgl.errors import ConfigError
from egin_dgl.ewl import distinguish
from egin_dgl.ewl.pairs import CATEGORIES, EXPECTED, MAX_DEPTH, exact_verdicts, make_pairs, permute_nodes

PAIRS = make_pairs(count=4)
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.category} {pair.number}")


def as_networkx(graph):
    made = nx.DiGraph()
    made.add_nodes_from((i, {"label": label}) for i, label in enumerate(graph.node_labels[:, 0].tolist()))
    ends = zip(graph.src.tolist(), graph.dst.tolist(), graph.edge_labels[:, 0].tolist(), strict=True)
    made.add_edges_from((i, j, {"label": label}) for i, j, label in ends)
    return made


def nested_colors(graph, depth, message):
    """Colour refinement by nested tuples: `message(colour of j, label of the edge)` is what a node sees of a neighbour."""
    colors = graph.node_labels[:, 0].tolist()
    edges = list(zip(graph.src.tolist(), graph.dst.tolist(), graph.edge_labels[:, 0].tolist(), strict=True))
    for _ in range(depth):
        seen = [[] for _ in colors]
        for i, j, label in edges:
            seen[j].append(message(colors[i], label))
        colors = [(own, tuple(sorted(around, key=repr))) for own, around in zip(colors, seen, strict=True)]
    return Counter(map(repr, colors))


@every_pair
def test_verdicts_equal_plain_refinement_and_an_exact_search(pair):
    expected = EXPECTED[pair.category]
    assert exact_verdicts(pair) == expected
    messages = {"1-WL": lambda color, label: color, "E-WL": lambda color, label: (color, label)}
    for name, message in messages.items():
        one, two = (nested_colors(graph, MAX_DEPTH, message) for graph in (pair.first, pair.second))
        assert (one != two) == expected[name]
    same = nx.algorithms.isomorphism.categorical_node_match("label", None)
    same_edge = nx.algorithms.isomorphism.categorical_edge_match("label", None)
    graphs = as_networkx(pair.first), as_networkx(pair.second)
    assert nx.is_isomorphic(*graphs, node_match=same, edge_match=same_edge) != expected["exact"]


@every_pair
def test_graphs_are_simple_undirected_and_counts_of_labels_differ_only_by_category(pair):
    for graph in (pair.first, pair.second):
        ends = set(zip(graph.src.tolist(), graph.dst.tolist(), strict=True))
        assert len(ends) == len(graph.src) and {(j, i) for i, j in ends} == ends
        assert (graph.src != graph.dst).all()
    counts = [
        np.bincount(graph.edge_labels[:, 0], minlength=3).tolist() for graph in (pair.first, pair.second)
    ]
    assert (counts[0] != counts[1]) == (pair.category == "edge counts")


def test_the_same_arguments_give_the_same_pairs_and_graphs_grow():
    again, other = make_pairs(count=4), make_pairs(count=4, seed=1)
    assert [pair.category for pair in PAIRS] == [name for name in CATEGORIES for _ in range(4)]

    def content(pairs):
        graphs = [graph for pair in pairs for graph in (pair.first, pair.second)]
        return [(g.src.tolist(), g.edge_labels.tolist(), g.node_labels.tolist()) for g in graphs]

    assert content(PAIRS) == content(again) != content(other)
    assert all(PAIRS[k].first.num_nodes < PAIRS[k + 3].first.num_nodes for k in range(0, len(PAIRS), 4))
    with pytest.raises(ConfigError, match="count must be an integer of at least 1"):
        make_pairs(count=0)


@every_pair
def test_a_permuted_graph_is_isomorphic(pair):
    moved = permute_nodes(pair.first, np.random.default_rng(0))
    assert distinguish(pair.first, moved, exact=True).isomorphic
