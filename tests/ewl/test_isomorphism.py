"""Comparing two graphs: what refinement proves, and what the exact search decides."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import build, permuted, random_graphs

from egin_dgl.errors import DataError
from egin_dgl.ewl import distinguish, isomorphism


def rings(*sizes):
    """Disjoint rings of equal nodes."""
    edges, start = [], 0
    for size in sizes:
        edges += [(start + k, start + (k + 1) % size) for k in range(size)]
        start += size
    return build(start, edges, [0] * start, [0] * start)


def test_distinguished_with_depth_and_witnesses():
    result = distinguish(rings(6), build(6, [(k, k + 1) for k in range(5)], [0] * 6, [0] * 5))
    assert result.distinguished and result.isomorphic is False and result.depth == 1
    assert sum(w.first for w in result.witnesses) == 6
    assert str(result).startswith(
        "not isomorphic: E-WL distinguishes them at depth 1, colour 0 on 0 and 2 nodes"
    )


def test_exact_search_decides_where_refinement_does_not():
    assert str(distinguish(rings(6), rings(3, 3))).startswith("undecided")
    result = distinguish(rings(6), rings(3, 3), exact=True)
    assert result.isomorphic is False and not result.distinguished and "an exact search does" in str(result)
    result = distinguish(rings(3, 4), rings(4, 3), exact=True)
    assert result.isomorphic is True and str(result).startswith("isomorphic")


def test_exact_search_respects_edge_labels_under_1wl():
    single = build(2, [(0, 1)], [0, 0], [0])
    double = build(2, [(0, 1)], [0, 0], [1])
    assert distinguish(single, double, "1-wl").isomorphic is None
    assert distinguish(single, double, "1-wl", exact=True).isomorphic is False


def brute_force(first, second):
    """Try every renaming of the nodes."""

    def named(graph, names):
        ends = zip(
            graph.src.tolist(), graph.dst.tolist(), graph.edge_labels.reshape(-1).tolist(), strict=True
        )
        labels = dict(zip(names, graph.node_labels.reshape(-1).tolist(), strict=True))
        return labels, sorted((names[a], names[b], label) for a, b, label in ends)

    goal = named(second, range(second.num_nodes))
    return first.num_nodes == second.num_nodes and any(
        named(first, names) == goal for names in permutations(range(first.num_nodes))
    )


@given(
    first=random_graphs(max_nodes=4, node_labels=1, edge_labels=2, max_edges=5),
    second=random_graphs(max_nodes=4, node_labels=1, edge_labels=2, max_edges=5),
    colored=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_exact_search_equals_brute_force(first, second, colored):
    copy, _ = permuted(first, np.random.default_rng(0))
    graphs = isomorphism.concatenate([first, second, copy])
    # with no help from colours the search has all the work
    colors = None if colored else np.zeros(graphs.num_nodes, dtype=int)
    matcher = isomorphism.Matcher(graphs, colors)
    assert matcher.isomorphic(0, 1) == brute_force(first, second)
    assert matcher.isomorphic(0, 2)


def test_parallel_edges_and_loops_count_in_the_exact_search():
    def square(labels):
        return build(4, [(0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (3, 0)], [0] * 4, labels)

    assert distinguish(square([0, 1, 0, 0, 1, 0]), square([1, 0, 0, 1, 0, 0]), exact=True).isomorphic
    assert not isomorphism.Matcher(
        isomorphism.concatenate([square([0, 0, 0, 1, 1, 0]), square([0, 1, 0, 0, 1, 0])]),
        np.zeros(8, dtype=int),
    ).isomorphic(0, 1)
    triples = isomorphism.concatenate(
        [build(2, [(0, 1)] * 3, [0, 0], labels) for labels in ([0, 0, 1], [0, 1, 1])]
    )
    assert not isomorphism.Matcher(triples, np.zeros(4, dtype=int)).isomorphic(0, 1)
    loops = [build(3, [(0, 1), (1, 2), (2, 0), (0, 0)], [0] * 3, [0, 0, 0, label]) for label in (0, 1)]
    pair = isomorphism.concatenate(loops)
    assert not isomorphism.Matcher(pair, np.zeros(6, dtype=int)).isomorphic(0, 1)


def test_discrete_coloring_needs_no_search(dataset, monkeypatch):
    monkeypatch.setattr(isomorphism, "_search", lambda *_: pytest.fail("searched"))
    data = dataset("Cuneiform")  # real coordinates on every node
    graph, _ = data[0]
    assert distinguish(graph, graph, exact=True).isomorphic
    pair = isomorphism.concatenate([build(2, [(0, 1)], [0, 1], [label]) for label in (0, 1)])
    assert not isomorphism.Matcher(pair, np.array([0, 1, 0, 1])).isomorphic(0, 1)


def test_two_single_graphs_are_needed():
    with pytest.raises(DataError, match="two single graphs"):
        distinguish([rings(3), rings(3)], rings(3))


def test_empty_graphs():
    empty = build(0, [], [], [])
    assert distinguish(empty, empty, exact=True).isomorphic
    assert not distinguish(empty, rings(3)).isomorphic
