"""bonds: both classes are the same graphs without edge labels; one step of E-WL distinguishes them."""

from collections import Counter, defaultdict

import pytest
import torch

from egin_dgl.data import bonds
from egin_dgl.errors import ConfigError


def unpack(dataset, index):
    """Node labels and, per node, its (bond, neighbour) pairs, as plain Python."""
    nodes, edges = (
        slice(*offsets[index : index + 2].tolist())
        for offsets in (dataset.node_offsets, dataset.edge_offsets)
    )
    labels = dataset.node_feats[nodes].argmax(1).tolist()
    neighbours = defaultdict(list)
    bond_kinds = dataset.edge_feats[edges].argmax(1).tolist()
    ends = ((each[edges] - nodes.start).tolist() for each in (dataset.src, dataset.dst))
    for u, v, bond in zip(*ends, bond_kinds, strict=True):
        neighbours[v].append((bond, u))
    return dataset.labels[index].item(), labels, neighbours


def histogram(labels, neighbours, depth, edges):
    """Colours after `depth` refinements; nested tuples need no table shared between graphs."""
    colours = list(labels)
    for _ in range(depth):
        colours = [
            (colours[v], tuple(sorted((bond if edges else 0, hash(colours[u])) for bond, u in neighbours[v])))
            for v in range(len(colours))
        ]
    return frozenset(
        Counter(map(hash, colours)).items()
    )  # hashes of ints and tuples of ints are the same in a process


def skeleton(neighbours):
    return frozenset((u, v) for v, pairs in neighbours.items() for _, u in pairs)


@pytest.fixture(scope="module", params=[(40, 4, 0), (60, 7, 3)], ids=str)
def unpacked(request):
    graphs, skeletons, seed = request.param
    dataset = bonds(graphs, skeletons, seed)
    return [unpack(dataset, index) for index in range(graphs)]


def by_skeleton(unpacked):
    groups = defaultdict(lambda: ([], []))
    for label, labels, neighbours in unpacked:
        groups[skeleton(neighbours)][label].append((labels, neighbours))
    return groups


def test_skeletons_are_balanced(unpacked):
    groups = by_skeleton(unpacked)
    assert len(groups) in (4, 7)
    assert all(len(alternating) == len(scrambled) > 0 for alternating, scrambled in groups.values())


def test_without_bonds_both_classes_are_the_same_graphs(unpacked):
    for classes in by_skeleton(unpacked).values():
        seen = set()
        for labels, neighbours in classes[0] + classes[1]:
            local = [
                (labels[v], len(p), sorted(labels[u] for _, u in p)) for v, p in sorted(neighbours.items())
            ]
            bonds_counted = Counter(bond for pairs in neighbours.values() for bond, _ in pairs)
            seen.add(
                (str(local), frozenset(bonds_counted.items()), histogram(labels, neighbours, 5, edges=False))
            )
        assert len(seen) == 1


def test_edge_aware_refinement_separates_at_depth_1(unpacked):
    for alternating, scrambled in by_skeleton(unpacked).values():
        colours = [
            {histogram(*graph, 1, edges=True) for graph in graphs} for graphs in (alternating, scrambled)
        ]
        assert not colours[0] & colours[1]


def test_one_double_bond_per_ring_atom_is_the_class(unpacked):
    for label, labels, neighbours in unpacked:
        doubles = [sum(bond for bond, _ in neighbours[v]) for v, kind in enumerate(labels) if kind == 0]
        assert len(doubles) in (6, 8, 10, 12) and sum(doubles) == len(doubles)
        assert (set(doubles) == {1}) if label == 0 else (2 in doubles and 0 in doubles)


def test_names_and_sizes():
    dataset = bonds()
    assert dataset.info.name == "bonds" and len(dataset) == 400 and dataset.labels.double().mean() == 0.5
    assert dataset.info.class_names == ("alternating", "scrambled")
    assert dataset.info.edge_names == ("label0=1", "label0=2") and dataset.vocabulary.edge.labels == ((1, 2),)
    assert dataset.notes == ()
    assert len(bonds(graphs=2, skeletons=9)) == 2


def test_seed_determines_graphs():
    one, again, other = bonds(40, seed=1), bonds(40, seed=1), bonds(40, seed=2)
    assert torch.equal(one.edge_feats, again.edge_feats) and one.digest == again.digest
    assert one.digest != other.digest
    assert not torch.equal(one.edge_feats[:100], other.edge_feats[:100])


def test_without_edge_features():
    dataset = bonds(40, edge_features="constant")
    assert dataset.info.edge_dim == 1 and dataset.edge_feats.unique().tolist() == [1]
    assert torch.equal(dataset.src, bonds(40).src)


@pytest.mark.parametrize(
    "wrong", [{"graphs": 0}, {"graphs": 7}, {"graphs": 8.0}, {"graphs": True}, {"skeletons": 0}, {"seed": -1}]
)
def test_invalid_options(wrong):
    with pytest.raises(ConfigError, match=f"bonds: {next(iter(wrong))} must be"):
        bonds(**wrong)
