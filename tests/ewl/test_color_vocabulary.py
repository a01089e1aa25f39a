"""Colours as node features: from the training graphs only, with an unknown, the same after saving."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import build, permuted, random_graphs, refines

from egin_dgl.data import bonds
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.ewl import ColorVocabulary, as_graph_set, refine
from egin_dgl.ewl.features import signature_hashes


def test_training_graphs_get_their_colors_and_others_the_unknown():
    data = as_graph_set(bonds(graphs=40, skeletons=4))
    train, test = list(range(0, 8)), list(range(8, 40))
    vocabulary = ColorVocabulary.fit(data, depth=2, indices=train)
    refinement = refine(data.subset(train), "e-wl", 2)
    assert np.array_equal(vocabulary.index(data.subset(train)), refinement.colors[2])
    assert vocabulary.size == vocabulary.unknown == refinement.num_colors(2)
    numbers = vocabulary.index(data.subset(test))
    assert numbers.max() == vocabulary.unknown and numbers.min() >= 0
    onehot = vocabulary.encode(data.subset(test), "onehot")
    assert onehot.shape == (len(numbers), vocabulary.size + 1) and onehot.dtype == np.float32
    assert np.array_equal(onehot.argmax(axis=1), numbers) and (onehot.sum(axis=1) == 1).all()


@pytest.mark.parametrize("labels", ["numbers", "vectors", "names", "tuples"])
def test_saved_state_gives_the_same_encoding(labels):
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
    for encoding in ("index", "onehot", "hash"):
        assert np.array_equal(vocabulary.encode(graph, encoding), restored.encode(graph, encoding))
    assert (vocabulary.index(graph) < vocabulary.unknown).all()
    with pytest.raises(DataError, match="not a table of colours"):
        ColorVocabulary.from_dict({"colors": {"method": "e-wl"}})


@pytest.mark.parametrize("method", ["1-wl", "e-wl"])
@given(graphs=st.lists(random_graphs(), min_size=1, max_size=3), seed=st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_hashes_follow_the_colors(method, graphs, seed):
    joint = refine(graphs, method, 2)
    hashes = signature_hashes(joint.graphs, 2, method)
    assert refines(joint.colors[2], hashes) and refines(hashes, joint.colors[2])
    copy, place = permuted(graphs[0], np.random.default_rng(seed))
    alone = signature_hashes(copy, 2, method)[place]
    assert np.array_equal(alone, hashes[: graphs[0].num_nodes])  # whatever else is in the set


def test_hashes_are_the_same_in_every_process_and_for_equal_values():
    graph = build(3, [(0, 1), (1, 2)], [0, 1, 2], [0, 1])
    real = as_graph_set(graph, graph.node_labels.astype(np.float32), graph.edge_labels.astype(np.float64))
    assert np.array_equal(signature_hashes(graph, 2), signature_hashes(real, 2))
    code = (
        "from egin_dgl.ewl import as_graph_set; from egin_dgl.ewl.features import signature_hashes;"
        "g = as_graph_set(([0, 1, 1, 2], [1, 0, 2, 1], 3), [0, 1, 2], [0, 0, 1, 1]); print(signature_hashes(g, 2).tolist())"
    )
    environment = {
        "PYTHONHASHSEED": "5",
        "DGLBACKEND": "pytorch",
        "PATH": "",
        "PYTHONPATH": ":".join(sys.path),
    }
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert json.loads(out.stdout) == signature_hashes(graph, 2).tolist()


def test_hash_fills_the_given_width(dataset):
    data = dataset("MUTAG")
    vocabulary = ColorVocabulary.fit(data, depth=2, indices=range(100))
    rows = vocabulary.encode(data, "hash", width=32)
    assert rows.shape == (3371, 32) and (rows.sum(axis=1) == 1).all() and (rows.sum(axis=0) > 0).all()
    other = ColorVocabulary.fit(data, depth=2, indices=range(10))
    assert np.array_equal(rows, other.encode(data, "hash", width=32))


def test_errors_say_what_to_do():
    graph = build(2, [(0, 1)], [0, 0], [0])
    vocabulary = ColorVocabulary.fit(graph, depth=1)
    for call, words in (
        (lambda: vocabulary.encode(graph, "dense"), "onehot or hash or index"),
        (lambda: vocabulary.encode(graph, "hash", width=0), "width"),
        (lambda: ColorVocabulary.fit(graph, depth=None), "depth"),
    ):
        with pytest.raises(ConfigError, match=words):
            call()
    with pytest.raises(DataError, match="different kinds"):
        vocabulary.index(as_graph_set(([], [], 1), [[1.0, 2.0]]))
