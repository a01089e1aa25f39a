"""EGIN and EGIN-M against E-WL: which graphs a wide untrained network distinguishes, in float64, on real and generated graphs.

A sum of concatenations is Σ (h_j, e_ij) = (Σ h_j, Σ e_ij). So a layer of EGIN sees only (own colour,
multiset of neighbours' colours, Σ e), with ε or without; the same holds for EGIN-E where edges carry one-hot labels, as
the sum of these is their multiset. `summed_colors` is the colour refinement by that signature. EGIN-M sees the multiset of
tuples, as E-WL does.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from small_graphs import random_graphs, refines, same_partition

from egin_dgl.data import bonds
from egin_dgl.data.loader import assemble
from egin_dgl.ewl import as_graph_set, refine
from egin_dgl.models import EGIN, EGINC, EGINE, EGINM

DEPTH = 3
# Without ε a node counts as one of its neighbours; a learnt ε is almost surely not 0, which another value represents.
EPSILONS = (0.0, 0.123456789)
SETS = ("MUTAG", "Cuneiform", "PTC_MR")
MORE_SETS = ("PTC_FM", "PTC_FR", "PTC_MM", *(f"Tox21_{assay}_evaluation" for assay in ("AhR", "AR", "ARE")))
LARGE_SETS = ("AIDS", "COX2_MD", "ER_MD")
# Pairs of graphs of AIDS that E-WL distinguishes and (own, neighbours, Σ e) does not, at any depth.
LOST_ON_AIDS = [(142, 1909), (512, 1405), (684, 958), (720, 1329), (1270, 1964), (1454, 1964), (1585, 1964)]
LOST_ON_AIDS += [(1698, 1837)]


def edge_sums(graphs):
    sums = np.zeros((graphs.num_nodes, graphs.edge_labels.shape[1]))
    np.add.at(sums, graphs.dst, graphs.edge_labels)
    return sums.round(9)  # sums in another order differ in the last digits


def summed_colors(graphs, depth):
    """c(l)_i = HASH(c(l-1)_i, {{c(l-1)_j | j in N(i)}}, Σ_j x(i,j)): the colours of the nodes at a depth."""
    numbers = {}
    sums = [tuple(row) for row in edge_sums(graphs).tolist()]
    colors = [numbers.setdefault(tuple(row), len(numbers)) for row in graphs.node_labels.tolist()]
    for _ in range(depth):
        seen = [[] for _ in colors]
        for src, dst in zip(graphs.src.tolist(), graphs.dst.tolist(), strict=True):
            seen[dst].append(colors[src])
        signatures = [
            (own, *sorted(around), total) for own, around, total in zip(colors, seen, sums, strict=True)
        ]
        numbers = {}
        colors = [numbers.setdefault(signature, len(numbers)) for signature in signatures]
    return np.array(colors, dtype=np.int64)


def summed_classes(data, depth=DEPTH):
    """A number for each graph's multiset of `summed_colors`."""
    graphs, numbers = as_graph_set(data), {}
    parts = np.split(summed_colors(graphs, depth), graphs.node_offsets[1:-1])
    return np.array([numbers.setdefault(tuple(np.sort(part)), len(numbers)) for part in parts])


def embedding_distances(data, make, eps):
    """Chebyshev distance of the embeddings of every two graphs: (G, G)."""
    torch.manual_seed(0)
    network = make(data.info, hidden_dim=64, num_layers=DEPTH, learn_eps=True, norm="none").double().eval()
    for conv in network.convs:
        torch.nn.init.constant_(conv.eps, eps)
    batch = assemble(data, torch.arange(len(data)))
    with torch.no_grad():
        vectors = network.embed(batch.graph, batch.node_feats.double(), batch.edge_feats.double()).numpy()
    return squareform(pdist(vectors / np.abs(vectors).max(axis=0).clip(1e-12), "chebyshev"))


def alike(classes):
    return classes[:, None] == classes[None]


def pairs(mask):
    return [tuple(pair) for pair in np.argwhere(np.triu(mask, 1)).tolist()]


@pytest.mark.parametrize("name", [*SETS, pytest.param("AIDS", marks=pytest.mark.slow)])
def test_embeddings_are_equal_exactly_where_the_summed_colors_are(name, dataset):
    same = alike(summed_classes(dataset(name)))
    for make, eps in zip((EGIN, EGINE), EPSILONS, strict=True):
        distance = embedding_distances(dataset(name), make, eps)
        assert distance[same].max() < 1e-10
        assert distance[~same].min() > 1e-6


@pytest.mark.parametrize("name", SETS)
def test_summed_colors_equal_e_wl_on_these_sets(name, dataset):
    assert same_partition(summed_classes(dataset(name)), refine(dataset(name), depth=DEPTH).graph_classes())


@pytest.mark.slow
def test_egin_c_distinguishes_eight_pairs_of_aids_that_egin_does_not(dataset):
    aids = dataset("AIDS")
    e_wl = alike(refine(aids, depth=DEPTH).graph_classes())
    assert pairs(alike(summed_classes(aids)) & ~e_wl) == LOST_ON_AIDS
    assert embedding_distances(aids, EGINC, eps=0.0)[~e_wl].min() > 1e-6


@pytest.mark.parametrize(
    "name", [*SETS, *MORE_SETS, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE_SETS)]
)
def test_egin_m_distinguishes_exactly_what_e_wl_does(name, dataset):
    same = alike(refine(dataset(name), depth=DEPTH).graph_classes())
    distance = embedding_distances(dataset(name), EGINM, eps=0.0)
    assert distance[same].max() < 1e-10
    assert distance[~same].min() > 1e-6
    if name == "AIDS":
        assert not any(same[pair] for pair in LOST_ON_AIDS)


@given(st.lists(random_graphs(), min_size=1, max_size=4), st.integers(0, 4))
@settings(deadline=None, max_examples=30)
def test_summed_colors_are_never_finer_than_those_of_e_wl(graphs, depth):
    e_wl = refine(graphs, depth=depth)
    one_hot = np.eye(3)[e_wl.graphs.edge_labels[:, 0]]
    graphs = as_graph_set(e_wl.graphs, edge_labels=one_hot)
    assert refines(e_wl.colors[depth], summed_colors(graphs, depth))
    # More layers do not help: what is stable is 1-WL with the sum of its edges as a part of each node's label.
    labels = np.concatenate([graphs.node_labels, edge_sums(graphs)], axis=1)
    stable = refine(graphs, "1-wl", node_labels=labels).colors[-1]
    assert same_partition(summed_colors(graphs, graphs.num_nodes + 1), stable)


@pytest.mark.parametrize("eps", EPSILONS)
@pytest.mark.parametrize("make", [EGIN, EGINC, EGINE, EGINM])
def test_no_variant_distinguishes_more_than_e_wl(make, eps):
    data = bonds(graphs=60)
    same = alike(refine(data, depth=DEPTH).graph_classes())
    assert embedding_distances(data, make, eps)[same].max() < 1e-10


@pytest.mark.parametrize("eps", EPSILONS)
def test_sum_of_concatenations_loses_pairs_of_edge_and_neighbor(eps):
    """EGIN and EGIN-E do not see single and double bonds exchanged; E-WL does, and EGIN-C, whose outer products keep
    the pairs, and EGIN-M, whose MLP sees them before the sum."""
    data = bonds(graphs=60)
    distinguished = ~alike(refine(data, depth=DEPTH).graph_classes())
    for make in (EGIN, EGINE):
        assert embedding_distances(data, make, eps)[distinguished].min() < 1e-12
    for make in (EGINC, EGINM):
        assert embedding_distances(data, make, eps)[distinguished].min() > 1e-6
