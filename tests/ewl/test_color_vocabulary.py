"""ColorVocabulary: colours of the training graphs, a code for unknown colours, equal after saving."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import build, permuted, random_graphs, refines

from egin_dgl.data import bonds
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.ewl import ColorVocabulary, as_graph_set, refine
from egin_dgl.ewl.color_vocabulary import signature_hashes

HASHES = [1885246616592866696, 5422192347640941318, 11281653397465843479]


def test_known_and_unknown_colors():
    data = as_graph_set(bonds(graphs=40, skeletons=4))
    train, test = list(range(0, 8)), list(range(8, 40))
    vocabulary = ColorVocabulary.fit(data, depth=2, indices=train)
    refinement = refine(data.subset(train), "e-wl", 2)
    assert np.array_equal(vocabulary.index(data.subset(train)), refinement.colors[2])
    assert vocabulary.size == refinement.num_colors(2)
    numbers = vocabulary.index(data.subset(test))
    assert numbers.max() == vocabulary.size and numbers.min() >= 0


@pytest.mark.parametrize("labels", ["numbers", "vectors", "names", "tuples"])
def test_restored_vocabulary_is_equal(labels):
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 30, (2, 60))
    kinds = {
        "numbers": rng.integers(-3, 3, 30),
        "vectors": rng.choice([0.1, -2.5, 0.0], (30, 2)).astype(np.float32),
        "names": rng.choice(["C", "N", "O"], 30),
        "tuples": [("C", int(k)) for k in rng.integers(0, 3, 30)],
    }
    reading = {"node_labels": kinds[labels], "edge_labels": rng.choice(["single", "double"], 60)}
    graph = as_graph_set((src, dst, 30), **reading)
    vocabulary = ColorVocabulary.fit(graph, depth=2)
    restored = ColorVocabulary.from_dict(json.loads(json.dumps(vocabulary.to_dict())))
    assert np.array_equal(vocabulary.index(graph), restored.index(graph))
    assert np.array_equal(vocabulary.buckets(graph, 8), restored.buckets(graph, 8))
    assert (vocabulary.index(graph) < vocabulary.size).all()
    with pytest.raises(DataError, match="not a table of colours"):
        ColorVocabulary.from_dict({"colors": {"method": "e-wl"}})


@pytest.mark.parametrize("method", ["1-wl", "e-wl"])
@given(graphs=st.lists(random_graphs(), min_size=1, max_size=3), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_hashes_have_the_partition_of_the_colors(method, graphs, seed):
    joint = refine(graphs, method, 2)
    hashes = signature_hashes(joint.graphs, 2, method)
    assert refines(joint.colors[2], hashes) and refines(hashes, joint.colors[2])
    copy, place = permuted(graphs[0], np.random.default_rng(seed))
    alone = signature_hashes(copy, 2, method)[place]
    assert np.array_equal(alone, hashes[: graphs[0].num_nodes])  # independent of the other graphs


def test_hashes_depend_on_values_only():
    graph = build(3, [(0, 1), (1, 2)], [0, 1, 2], [0, 1])
    real = as_graph_set(graph, graph.node_labels.astype(np.float32), graph.edge_labels.astype(np.float64))
    assert np.array_equal(signature_hashes(graph, 2), signature_hashes(real, 2))
    assert signature_hashes(graph, 2).tolist() == HASHES  # equal in every process


def test_buckets_do_not_depend_on_training_graphs(dataset):
    data = dataset("MUTAG")
    vocabulary = ColorVocabulary.fit(data, depth=2, indices=range(100))
    buckets = vocabulary.buckets(data, width=32)
    assert buckets.shape == (3371,) and set(buckets.tolist()) == set(range(32))
    other = ColorVocabulary.fit(data, depth=2, indices=range(10))
    assert np.array_equal(buckets, other.buckets(data, width=32))


def test_invalid_arguments():
    graph = build(2, [(0, 1)], [0, 0], [0])
    vocabulary = ColorVocabulary.fit(graph, depth=1)
    for call, message in (
        (lambda: vocabulary.buckets(graph, width=0), "width"),
        (lambda: ColorVocabulary.fit(graph, depth=None), "depth"),
    ):
        with pytest.raises(ConfigError, match=message):
            call()
    with pytest.raises(DataError, match="different kinds"):
        vocabulary.index(as_graph_set(([], [], 1), [[1.0, 2.0]]))
