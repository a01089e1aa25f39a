"""Small graphs to state laws on: built from lists, drawn by hypothesis, permuted."""

import numpy as np
from hypothesis import strategies as st

from egin_dgl.ewl import GraphSet, as_graph_set


def build(num_nodes, edges, node_labels, edge_labels, both_ways=True) -> GraphSet:
    """One graph from lists; both_ways adds the reverse of every edge but loops."""
    edges, edge_labels = list(edges), list(edge_labels)
    if both_ways:
        back = [k for k, (a, b) in enumerate(edges) if a != b]
        edges, edge_labels = (
            edges + [edges[k][::-1] for k in back],
            edge_labels + [edge_labels[k] for k in back],
        )
    src, dst = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return as_graph_set(
        (src, dst, num_nodes), np.array(node_labels, dtype=int), np.array(edge_labels, dtype=int)
    )


@st.composite
def random_graphs(draw, max_nodes=8, node_labels=2, edge_labels=3, simple=False, directed=None, max_edges=14):
    """Small graphs with parallel edges, loops and isolated nodes (unless simple), directed or not."""
    n = draw(st.integers(0 if not simple else 1, max_nodes))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)) if n else st.nothing()
    if simple:
        ends = ends.filter(lambda e: e[0] < e[1]) if n > 1 else st.nothing()
    edges = draw(st.lists(ends, max_size=max_edges, unique=simple)) if not ends.is_empty else []
    nodes = draw(st.lists(st.integers(0, node_labels - 1), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(0, edge_labels - 1), min_size=len(edges), max_size=len(edges)))
    one_way = draw(st.booleans()) if directed is None else directed
    return build(n, edges, nodes, labels, both_ways=not one_way)


def permuted(graph: GraphSet, rng: np.random.Generator) -> tuple[GraphSet, np.ndarray]:
    """The same graph with its nodes and edges in another order, and the new number of each old node."""
    place = rng.permutation(graph.num_nodes)
    order = rng.permutation(len(graph.src))
    labels = np.empty_like(graph.node_labels)
    labels[place] = graph.node_labels
    ends = place[graph.src[order]], place[graph.dst[order]]
    return as_graph_set((*ends, graph.num_nodes), labels, graph.edge_labels[order]), place


def same_partition(a, b) -> bool:
    """Whether two colourings of the same nodes have the same classes."""
    a, b = np.unique(a, return_inverse=True)[1], np.unique(b, return_inverse=True)[1]
    return (
        len(np.unique(np.stack([a, b]), axis=1).T) == len(np.unique(a)) == len(np.unique(b))
        if len(a)
        else True
    )


def refines(fine, coarse) -> bool:
    """Whether nodes of equal fine colour always have equal coarse colour."""
    return len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == len(set(fine.tolist()))
