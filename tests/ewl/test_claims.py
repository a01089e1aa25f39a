"""The claims of the paper about E-WL, as laws on random graphs, and agreement with networkx."""

from collections import defaultdict
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import build, permuted, random_graphs, refines, same_partition

from egin_dgl.ewl import distinguish, refine
from egin_dgl.ewl.inputs import concatenate

SETS = st.lists(random_graphs(), min_size=1, max_size=4)


@given(graphs=SETS)
@settings(max_examples=30, deadline=None)
def test_theorem_1_ewl_refines_1wl(graphs):
    graphs = concatenate(graphs)
    coarse, fine = refine(graphs, "1-wl", 4), refine(graphs, "e-wl", 4)
    for depth in range(5):
        assert refines(fine.colors[depth], coarse.colors[depth])
        assert refines(fine.graph_classes(depth), coarse.graph_classes(depth))


@given(graphs=SETS)
@settings(max_examples=30, deadline=None)
def test_with_one_edge_label_ewl_is_1wl(graphs):
    graphs = concatenate(graphs)
    graphs = replace(graphs, edge_labels=np.full_like(graphs.edge_labels, 7))
    plain, edged = refine(graphs, "1-wl"), refine(graphs, "e-wl")
    assert plain.stable_depth == edged.stable_depth
    assert all(np.array_equal(a, b) for a, b in zip(plain.colors, edged.colors, strict=True))


@given(graphs=SETS)
@settings(max_examples=30, deadline=None)
def test_theorem_2_ewl_ea_equals_ewl(graphs):
    graphs = concatenate(graphs)
    ewl, aggregated = refine(graphs, "e-wl"), refine(graphs, "e-wl-ea")
    assert ewl.stable_depth == aggregated.stable_depth
    for depth in range(ewl.depth + 1):
        assert same_partition(ewl.colors[depth], aggregated.colors[depth])
        assert same_partition(ewl.graph_classes(depth), aggregated.graph_classes(depth))


@given(graph=random_graphs(), seed=st.integers(0, 999))
@settings(max_examples=30, deadline=None)
def test_isomorphic_copies_agree(graph, seed):
    copy, place = permuted(graph, np.random.default_rng(seed))
    for method in ("1-wl", "e-wl", "e-wl-ea"):
        result = refine([graph, copy], method)
        for colors in result.colors:
            assert np.array_equal(colors[: graph.num_nodes], colors[graph.num_nodes :][place])
    assert distinguish(graph, copy, exact=True).isomorphic


def test_graphs_of_the_figures():
    """Squares of equal nodes with two edges of each kind: (a) and (b) are one graph, (c) has its kinds elsewhere."""
    square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    a = build(4, square, [0] * 4, [0, 1, 0, 1])
    b = build(4, [(3, 1), (1, 0), (0, 2), (2, 3)], [0] * 4, [0, 1, 0, 1])
    c = build(4, square, [0] * 4, [0, 0, 1, 1])
    assert len(set(refine([a, b, c], "1-wl").graph_classes().tolist())) == 1
    for method in ("e-wl", "e-wl-ea"):
        first, second, third = refine([a, b, c], method).graph_classes().tolist()
        assert first == second != third
    assert distinguish(a, b, exact=True).isomorphic and distinguish(a, c, "1-wl").isomorphic is None
    assert distinguish(a, c).isomorphic is False and distinguish(a, c).depth == 1


def networkx_partition(graphs, depth):
    """Colours of networkx at each depth, the labels written with one width so that none runs into the next."""
    hashes = defaultdict(dict)
    names = np.unique(graphs.node_labels, axis=0, return_inverse=True)[1].reshape(-1)
    kinds = np.unique(graphs.edge_labels, axis=0, return_inverse=True)[1].reshape(-1)
    built = [nx.Graph() for _ in range(len(graphs))]
    for node, graph in enumerate(graphs.graph_of_node.tolist()):
        built[graph].add_node(node, name=f"{names[node]:06d}")
    for a, b, kind in zip(graphs.src.tolist(), graphs.dst.tolist(), kinds.tolist(), strict=True):
        built[graphs.graph_of_node[a]].add_edge(a, b, name=f"{kind:06d}")
    for graph in built:
        for node, found in nx.weisfeiler_lehman_subgraph_hashes(
            graph, edge_attr="name", node_attr="name", iterations=depth
        ).items():
            for level, digest in enumerate(found, start=1):
                hashes[level][node] = digest
    return {level: [found[node] for node in range(graphs.num_nodes)] for level, found in hashes.items()}


@given(graphs=st.lists(random_graphs(simple=True, directed=False), min_size=1, max_size=3))
@settings(max_examples=25, deadline=None)
def test_partitions_equal_those_of_networkx(graphs):
    graphs = concatenate(graphs)
    result = refine(graphs, "e-wl", 3)
    for depth, colors in networkx_partition(graphs, 3).items():
        assert same_partition(result.colors[depth], colors)


@pytest.mark.parametrize(
    ("name", "count"),
    [("MUTAG", 188), ("PTC_MR", 344), ("AIDS", 300), ("COX2_MD", 40), ("ER_MD", 40), ("Cuneiform", 60)],
)
def test_partitions_of_real_sets_equal_those_of_networkx(name, count, dataset):
    graphs = refine(dataset(name), depth=0, attributes=name not in ("AIDS", "Cuneiform")).graphs
    graphs = graphs.subset(np.linspace(0, len(graphs) - 1, count).astype(int))
    directed = set(zip(graphs.src.tolist(), graphs.dst.tolist(), strict=True))
    assert all((b, a) in directed for a, b in directed)
    result = refine(graphs, "e-wl", 4)
    for depth, colors in networkx_partition(graphs, 4).items():
        assert same_partition(result.colors[depth], colors)
