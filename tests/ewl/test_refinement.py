"""Colour refinement: exact, canonical, and defined in the special cases."""

import hashlib

import numpy as np
import pytest
import torch
from graphs import dgl
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import build, permuted, random_graphs, same_partition

from egin_dgl.data import bonds
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.ewl import ranking, refine
from egin_dgl.ewl.inputs import concatenate

METHODS = ("1-wl", "e-wl", "e-wl-ea")
COLORS = "4c06d7de7d474556"  # sha256 of the colours of bonds(graphs=30)


def reference(graphs, method, depth):
    """The equations, with nested tuples as colours."""
    edge_labels = [tuple(row) for row in graphs.edge_labels.tolist()]
    colors = [tuple(row) for row in graphs.node_labels.tolist()]
    edges = edge_labels if method != "1-wl" else [()] * len(edge_labels)
    rounds, names = [colors], {}
    for _ in range(depth):
        seen = [[] for _ in colors]
        for k, (j, i) in enumerate(zip(graphs.src.tolist(), graphs.dst.tolist(), strict=True)):
            seen[i].append((colors[j], edges[k]))
        colors = [
            names.setdefault((c, tuple(sorted(s))), len(names)) for c, s in zip(colors, seen, strict=True)
        ]
        if method == "e-wl-ea":
            ends = zip(edges, graphs.src.tolist(), graphs.dst.tolist(), strict=True)
            edges = [names.setdefault((d, colors[i], colors[j]), len(names)) for d, j, i in ends]
        rounds.append(colors)
    return rounds


@pytest.mark.parametrize("method", METHODS)
@given(graphs=st.lists(random_graphs(), min_size=1, max_size=3))
@settings(max_examples=25, deadline=None)
def test_partitions_equal_those_of_the_equations(method, graphs):
    graphs = concatenate(graphs)
    result = refine(graphs, method, 3)
    for ours, theirs in zip(result.colors, reference(graphs, method, 3), strict=True):
        assert same_partition(ours, [hash(c) for c in theirs])
        assert sorted(set(ours.tolist())) == list(range(ours.max(initial=-1) + 1))


@pytest.mark.parametrize("method", METHODS)
@given(graphs=st.lists(random_graphs(), min_size=1, max_size=4), seed=st.integers(0, 999))
@settings(max_examples=25, deadline=None)
def test_permutation_of_graphs_nodes_and_edges(method, graphs, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(graphs))
    copies = [permuted(graphs[k], rng) for k in order]
    ours = refine(concatenate(graphs), method)
    theirs = refine(concatenate([copy for copy, _ in copies]), method)
    assert ours.stable_depth == theirs.stable_depth
    offsets, moved = ours.graphs.node_offsets, theirs.graphs.node_offsets
    for depth in range(ours.depth + 1):
        for position, k in enumerate(order):
            mine = ours.colors[depth][offsets[k] : offsets[k + 1]]
            place = copies[position][1]
            assert np.array_equal(theirs.colors[depth][moved[position] : moved[position + 1]][place], mine)
        assert np.array_equal(theirs.graph_classes(depth), ours.graph_classes(depth)[order])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("limit", [1, 5000, 2**40])
def test_all_key_limits_give_equal_colors(method, limit, monkeypatch):
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, 400, (2, 1200))
    graph = (src, dst, 400)
    labels = rng.integers(0, 2, 400), rng.integers(0, 2, 1200)
    expected = refine(graph, method, None, None, *labels)
    monkeypatch.setattr(ranking, "KEY_LIMIT", limit)
    found = refine(graph, method, None, None, *labels)
    assert all(np.array_equal(a, b) for a, b in zip(expected.colors, found.colors, strict=True))


def test_nodes_of_high_degree():
    leaves = np.arange(2, 3002)
    src = np.concatenate([leaves, leaves, np.zeros(3000, int), np.ones(3000, int)])
    dst = np.concatenate([np.zeros(3000, int), np.ones(3000, int), leaves, leaves])
    result = refine((src, dst, 3002))
    assert result.num_colors() == 2 and result.colors[-1][0] == result.colors[-1][1]
    labels = np.zeros(12000, int)
    labels[2999] = 1  # the last edge into the first hub
    result = refine((src, dst, 3002), edge_labels=labels)
    assert result.colors[1][0] != result.colors[1][1]


def test_stable_colors_repeat():
    path = build(5, [(0, 1), (1, 2), (2, 3), (3, 4)], [0] * 5, [0] * 4)
    result = refine(path, depth=6)
    assert result.stable_depth == 2 and len(result.colors) == 7
    assert [result.num_colors(d) for d in range(7)] == [1, 2, 3, 3, 3, 3, 3]
    assert np.array_equal(result.colors[2], result.colors[6])
    assert refine(path).depth == 2 and refine(path, depth=1).stable_depth is None


def test_stable_depth_is_that_of_the_set():
    triangle = build(3, [(0, 1), (1, 2), (2, 0)], [0] * 3, [0] * 3)
    four = build(4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], [0] * 4, [0] * 6)
    result = refine([triangle, four])
    assert result.graph_stable_depths().tolist() == [0, 0]
    assert result.stable_depth == 1 and result.num_colors(0) == 1 and result.num_colors(1) == 2


def test_special_cases():
    once, twice = (build(2, [(0, 1)] * k, [0, 0], [0] * k) for k in (1, 2))
    assert refine([once, twice], depth=1).num_colors() == 2  # parallel edges count
    looped = build(2, [(0, 1), (0, 0)], [0, 0], [0, 0])
    colors = refine(looped, depth=1).colors[1]
    assert colors[0] != colors[1]  # a self-loop makes a node its own neighbour
    arrow = build(3, [(0, 1), (1, 2)], [0, 0, 1], [0, 0], both_ways=False)
    colors = refine(arrow, depth=1).colors[1]
    assert len(set(colors.tolist())) == 3  # 1 sees 0; 0 sees nothing, and not the 2 that 1 points to
    lonely = build(3, [(0, 1)], [0, 0, 0], [0])
    assert refine(lonely).colors[-1].tolist() == [1, 1, 0]  # no neighbours sort before one
    empty = build(0, [], [], [])
    result = refine([empty, once, empty])
    assert result.graph_classes().tolist() == [0, 1, 0] and result.graph_histograms().shape == (3, 1)
    assert refine([]).depth == 0 and len(refine([]).graph_classes()) == 0
    assert refine(build(4, [], [0, 1, 0, 1], [])).stable_depth == 0


def test_graph_classes_have_the_partition_of_multisets(dataset):
    result = refine(dataset("MUTAG"), "1-wl", 3)
    rows = [tuple(row) for row in result.graph_histograms(3).toarray().tolist()]
    assert same_partition(result.graph_classes(3), [hash(row) for row in rows])


@pytest.mark.parametrize("method", METHODS)
def test_all_input_types_give_equal_colors(method):
    data = bonds(graphs=20, skeletons=3)
    expected = refine(data, method, 3)
    singles = [data[i] for i in range(20)]
    batched = dgl.batch([graph for graph, _ in singles])
    arrays = (data.src.numpy(), data.dst.numpy(), data.node_offsets.numpy())
    batched.ndata["atom"] = batched.ndata.pop("feat")
    others = [
        refine(singles, method, 3),
        refine(batched, method, 3, node_labels="atom"),
        refine(arrays, method, 3, node_labels=data.node_feats, edge_labels=data.edge_feats),
        refine(
            arrays, method, 3, None, data.node_feats.tolist(), [tuple(x) for x in data.edge_feats.tolist()]
        ),
    ]
    for other in others:
        assert all(np.array_equal(a, b) for a, b in zip(expected.colors, other.colors, strict=True))


def test_types_of_labels():
    def colors(labels, **options):
        return refine(([], [], len(labels)), depth=0, node_labels=labels, **options).colors[0].tolist()

    assert colors([3, -5, 3]) == [1, 0, 1]
    assert colors(["N", "C", "N"]) == [1, 0, 1]
    assert colors([("C", 1), ("C", 0), ("C", 1)]) == [1, 0, 1]
    assert colors([1, "1", 1]) == [0, 1, 0]
    assert colors([(1, 2), (1,), (1, 2)]) == [1, 0, 1]
    assert colors([2**62, -(2**62), 2**62 + 1]) == [1, 0, 2]
    assert colors([0.0, -0.0, 1e-9]) == [0, 0, 1]
    assert colors([[0.5, 1], [0.5, 0], [-1, 7]]) == [2, 1, 0]
    assert colors([0.123, 0.124, 0.2], decimals=2) == [0, 0, 1]
    assert colors([-0.001, 0.001], decimals=2) == [0, 0]
    assert colors(torch.tensor([[1, 0], [0, 1]], dtype=torch.bfloat16)) == [1, 0]
    assert colors(np.array([True, False])) == [1, 0]
    assert colors(np.eye(70)[[3, 40, 3, 69]]) == [2, 1, 2, 0]  # more columns than one number holds
    assert colors([float("inf"), 1.0, float("inf")]) == [1, 0, 1]


@given(rows=st.lists(st.tuples(*[st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0])] * 3), min_size=1, max_size=20))
@settings(max_examples=25, deadline=None)
def test_vectors_are_ranked_in_lexicographic_order(rows):
    colors = refine(([], [], len(rows)), depth=0, node_labels=np.array(rows)).colors[0]
    order = {row: rank for rank, row in enumerate(sorted({tuple(x + 0.0 for x in row) for row in rows}))}
    assert colors.tolist() == [order[tuple(x + 0.0 for x in row)] for row in rows]


def test_invalid_input():
    for graphs, options, message in (
        (([0], [1], 2), {"node_labels": [1.0, float("nan")]}, "node 1 has the label NaN"),
        (([0], [1], 2), {"node_labels": [1, 2, 3]}, "one for each of 2 nodes"),
        (([0], [5], 2), {}, "ends outside"),
        (([-1], [0], 2), {}, "ends outside"),
        (([0], [2], [0, 2, 4]), {}, "joins two graphs"),
        (([0.5], [1.0], 2), {}, "must be integers"),
        ("MUTAG.txt", {}, "cannot read graphs|is not a molecule"),
        (None, {}, "cannot read graphs"),
        (dgl.graph(([0], [1])), {"node_labels": "atom"}, "no node field 'atom'"),
        (([], [], 1), {"node_labels": [{}]}, "hashable"),
    ):
        with pytest.raises(DataError, match=message):
            refine(graphs, **options)
    for options, message in (
        ({"method": "2-wl"}, "1-wl or e-wl"),
        ({"depth": -1}, "depth"),
        ({"depth": True}, "depth"),
    ):
        with pytest.raises(ConfigError, match=message):
            refine(([], [], 1), **options)
    with pytest.raises(DataError, match="different kinds"):
        refine([([], [], 1), ([], [], 1)], node_labels=[["a"], [1]])


def test_colors_are_equal_in_every_process():
    colors = refine(bonds(graphs=30), "e-wl").colors
    assert hashlib.sha256(b"".join(level.tobytes() for level in colors)).hexdigest()[:16] == COLORS
