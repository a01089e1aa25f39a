"""Perturbed edges: what each variant keeps and what it removes."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch

from egin_dgl.data import GraphDataset, bonds, load_tu
from egin_dgl.data.arrays import GraphArrays, RawColumns, arrange_edges
from egin_dgl.data.perturb import pair_edges, perturb_features, perturb_structure
from egin_dgl.data.prepare import GraphOptions, from_arrays
from egin_dgl.ewl import audit

GRAPHS = 12


@pytest.fixture(scope="module")
def arrays():
    """Random graphs with edge labels and attributes; every third has self-loops, parallel and one-way edges."""
    random = np.random.default_rng(0)
    owner, ends, first = [], [], 0
    for graph in range(GRAPHS):
        nodes = int(random.integers(5, 12))
        pairs = np.array(
            [(a, b) for a in range(nodes) for b in range(a) if random.random() < 0.3] or [(1, 0)]
        )
        if graph % 3 == 0:
            pairs = np.concatenate([pairs, pairs[:2], [(0, 0)], random.permuted(pairs, axis=1)])
        ends.append(first + pairs)
        owner += [graph] * nodes
        first += nodes
    src, dst = np.concatenate(ends).T
    columns = RawColumns(
        labels=random.integers(3, size=(len(src), 1)), attributes=random.random((len(src), 2))
    )
    raw = GraphArrays(np.array(owner), src, dst, GRAPHS, edges=columns)
    whole = arrange_edges(raw, symmetric=False, self_loops=True)
    both = arrange_edges(raw.take(np.arange(GRAPHS) % 3 != 0))
    return {"odd": whole, "undirected": both}


def features(arrays):
    """Label and attributes of each edge."""
    table = np.concatenate([arrays.edges.labels, arrays.edges.attributes], axis=1)
    return list(map(tuple, table.tolist()))


def edges(arrays, of=lambda src, dst, feature, graph: (src, dst, feature)):
    graph = arrays.node_graph[arrays.src].tolist()
    return Counter(map(of, arrays.src.tolist(), arrays.dst.tolist(), features(arrays), graph))


def by_graph(src, dst, feature, graph):
    return graph, feature


def without_features(src, dst, feature, graph):
    return src, dst


@pytest.mark.parametrize("kind", ["odd", "undirected"])
def test_permutation_keeps_structure_and_features_of_each_graph(arrays, kind):
    one, other = arrays[kind], perturb_features(arrays[kind], "permuted")
    assert edges(one, without_features) == edges(other, without_features)
    assert edges(one, by_graph) == edges(other, by_graph) and edges(one) != edges(other)


@pytest.mark.parametrize("kind", ["odd", "undirected"])
def test_rewiring_keeps_degrees_and_features_and_creates_no_loop_or_repeated_edge(arrays, kind):
    one, other = arrays[kind], perturb_structure(arrays[kind], "rewired")
    for ends in ("src", "dst"):
        degrees = [np.bincount(getattr(x, ends), minlength=len(x.node_graph)) for x in (one, other)]
        assert np.array_equal(*degrees)
    assert np.array_equal(one.node_graph[one.src], other.node_graph[other.src])
    assert np.array_equal(other.node_graph[other.src], other.node_graph[other.dst])
    assert edges(one, by_graph) == edges(other, by_graph)
    before, after = edges(one, without_features), edges(other, without_features)
    assert before != after
    assert all(a != b and count == 1 for (a, b), count in (after - before).items())


@pytest.mark.parametrize("perturb", [perturb_features, perturb_structure])
def test_an_edge_and_its_reverse_stay_equal(arrays, perturb):
    found = edges(perturb(arrays["undirected"], "permuted" if perturb is perturb_features else "rewired"))
    assert all(found[dst, src, feature] == count for (src, dst, feature), count in found.items())


def test_parallel_edges_are_paired_by_their_features():
    columns = RawColumns(labels=np.array([[1], [2], [2], [1]]))
    parallel = GraphArrays(np.zeros(2, int), np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), 1, edges=columns)
    pairs = pair_edges(parallel)
    assert pairs.edge.tolist() == [0, 1] and pairs.reverse.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("perturb", "option"), [(perturb_features, "permuted"), (perturb_structure, "rewired")]
)
def test_a_graph_is_perturbed_alike_beside_any_others(arrays, perturb, option):
    whole = perturb(arrays["odd"], option)
    chunks = [perturb(chunk, option) for chunk in arrays["odd"].chunks(5)]
    assert features(whole) == [feature for chunk in chunks for feature in features(chunk)]
    for one, chunk in zip(whole.chunks(5), chunks, strict=True):
        assert np.array_equal(one.src, chunk.src) and np.array_equal(one.dst, chunk.dst)
    assert edges(perturb(arrays["odd"], option, seed=1)) != edges(whole)


def test_graphs_of_equal_edges_are_permuted_differently():
    """Else the classes of `bonds` would be as different as before."""
    found = audit(bonds(100, edge_features="permuted"), depth=2)
    assert found.level("e-wl", 2).graphs > audit(bonds(100), depth=2).level("e-wl", 2).graphs


def test_rewiring_reaches_every_graph_of_equal_degrees():
    path = nx.path_graph(4)
    found = {
        tuple(sorted(map(tuple, zip(one.src.tolist(), one.dst.tolist(), strict=True))))
        for seed in range(20)
        for one in [GraphDataset.from_graphs([path], structure="rewired", shuffle_seed=seed)]
    }
    assert len(found) == 2  # 0–1–2–3 and 0–2–1–3: the ends keep degree 1


@pytest.mark.parametrize(
    "graph", [nx.complete_graph(5), nx.star_graph(4), nx.empty_graph(3), nx.path_graph(2)]
)
def test_where_no_swap_is_possible_the_graph_stays_and_a_note_says_so(graph):
    nx.set_edge_attributes(graph, 1, "kind")
    one, other = (GraphDataset.from_graphs([graph] * 2, structure=s) for s in ("keep", "rewired"))
    assert torch.equal(one.src, other.src) and torch.equal(one.dst, other.dst)
    assert other.notes == ("2 of 2 graph(s) are not rewired: no two of their edges can exchange ends",)


def test_without_edges_features_keep_their_columns(arrays):
    one, other = (from_arrays(arrays["odd"], "x", GraphOptions(structure=s)) for s in ("keep", "none"))
    assert len(other.src) == 0 and other.edge_feats.shape == (0, one.info.edge_dim)
    assert other.info.edge_names == one.info.edge_names
    assert other.info.node_names == ("degree=0",)
    assert torch.equal(other.node_offsets, one.node_offsets)


def test_constant_features_leave_ewl_what_1wl_distinguishes():
    mutag = load_tu("MUTAG", edge_features="constant")
    found = audit(mutag, depth=3)
    for depth in range(4):
        one, other = found.level("1-wl", depth), found.level("e-wl", depth)
        assert (one.colors, one.graphs, one.bound) == (other.colors, other.graphs, other.bound)


def test_variants_have_caches_of_their_own():
    options = [{}, {"edge_features": "permuted"}, {"structure": "rewired"}, {"structure": "none"}]
    options += [{"structure": "rewired", "shuffle_seed": 1}]
    first, again = ([load_tu("MUTAG", **option) for option in options] for _ in range(2))
    assert len({dataset.digest for dataset in first}) == len(options)
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one.src, other.src) and torch.equal(one.edge_feats, other.edge_feats)
    src = [dataset.src.tolist() for dataset in first]
    assert src[0] == src[1] and src[2] != src[0] and src[4] not in (src[0], src[2]) and src[3] == []
