"""A feature vector is attributes ‖ one-hot of each label column, and new data is encoded with the old vocabulary."""

import json

import numpy as np
import pytest

from egin_dgl.data.features import Vocabulary
from egin_dgl.data.tu import TUArrays
from egin_dgl.errors import DataError

EDGES = {"src": np.array([0, 1, 1, 2]), "dst": np.array([1, 0, 2, 1])}


def path(**tables):
    """The path 0-1-2, and node 3 alone."""
    tables = {key: np.asarray(value) for key, value in tables.items()}
    return TUArrays(np.zeros(4, dtype=np.int64), **EDGES, graphs=1, **tables)


def test_attributes_then_a_block_per_label_column():
    arrays = path(
        node_labels=[[5, 0], [-1, 0], [5, 9], [5, 0]],
        node_attributes=[[0.5], [1.5], [2.5], [3.5]],
        edge_labels=[[1], [1], [3], [3]],
        edge_attributes=[[0.1, 0.2]] * 4,
    )
    vocabulary = Vocabulary.fit(arrays)
    encoded = vocabulary.encode(arrays)
    assert vocabulary.node.names == ("attribute0", "label0=-1", "label0=5", "label1=0", "label1=9")
    assert encoded.node_feats.tolist() == [
        [0.5, 0, 1, 1, 0],
        [1.5, 1, 0, 1, 0],
        [2.5, 0, 1, 0, 1],
        [3.5, 0, 1, 1, 0],
    ]
    assert vocabulary.edge.names == ("attribute0", "attribute1", "label0=1", "label0=3")
    expected = [[0.1, 0.2, 1, 0], [0.1, 0.2, 1, 0], [0.1, 0.2, 0, 1], [0.1, 0.2, 0, 1]]
    assert np.allclose(encoded.edge_feats, expected)
    assert encoded.node_feats.dtype == encoded.edge_feats.dtype == np.float32
    assert encoded.unseen_node_labels == encoded.unseen_edge_labels == 0


def test_without_node_labels_degree_is_the_label():
    vocabulary = Vocabulary.fit(path())
    assert vocabulary.node.names == ("degree=0", "degree=1", "degree=2")
    assert vocabulary.encode(path()).node_feats.tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]


def test_constant_features():
    vocabulary = Vocabulary.fit(path(), node_features="constant")
    encoded = vocabulary.encode(path())
    assert vocabulary.node.names == vocabulary.edge.names == ("constant",)
    assert encoded.node_feats.tolist() == [[1]] * 4 and encoded.edge_feats.tolist() == [[1]] * 4


def test_edge_features_can_be_switched_off():
    arrays = path(edge_labels=[[1], [1], [3], [3]], edge_attributes=[[0.5]] * 4)
    vocabulary = Vocabulary.fit(arrays, use_edge_features=False)
    assert vocabulary.edge.attributes == 0
    assert vocabulary.encode(arrays).edge_feats.tolist() == [[1]] * 4


def test_no_edge_left_still_has_a_column():
    arrays = TUArrays(
        np.zeros(1, dtype=np.int64), *np.zeros((2, 0), dtype=np.int64), 1, edge_labels=np.zeros((0, 1))
    )
    assert Vocabulary.fit(arrays).encode(arrays).edge_feats.shape == (0, 1)


@pytest.mark.parametrize("value", [-7, 2, 99])
def test_an_unseen_label_is_zero_and_counted(value, caplog):
    vocabulary = Vocabulary.fit(path(node_labels=[[1], [1], [3], [3]], edge_labels=[[1]] * 4))
    encoded = vocabulary.encode(
        path(node_labels=[[1], [value], [3], [value]], edge_labels=[[1], [1], [value], [1]])
    )
    assert encoded.node_feats.tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]
    assert (encoded.unseen_node_labels, encoded.unseen_edge_labels) == (2, 1)
    assert "2 node and 1 edge label(s) are not in the vocabulary" in caplog.text


def test_an_unseen_degree_is_zero_too():
    vocabulary = Vocabulary.fit(path())
    star = TUArrays(np.zeros(4, dtype=np.int64), np.array([1, 2, 3]), np.array([0, 0, 0]), graphs=1)
    encoded = vocabulary.encode(star)
    assert encoded.node_feats[0].tolist() == [0, 0, 0] and encoded.unseen_node_labels == 1


def test_other_columns_than_the_vocabulary_are_refused():
    vocabulary = Vocabulary.fit(path(node_labels=[[1], [1], [3], [3]]))
    for other in (
        path(),
        path(node_labels=[[1, 2]] * 4),
        path(node_labels=[[1]] * 4, node_attributes=[[0.5]] * 4),
    ):
        with pytest.raises(DataError, match="the vocabulary has 0 attribute and 1 label column"):
            vocabulary.encode(other)


@pytest.mark.parametrize(
    "arrays", [path(), path(node_labels=[[1], [2], [3], [-4]], edge_attributes=[[0.5]] * 4)]
)
def test_json_round_trip(arrays):
    vocabulary = Vocabulary.fit(arrays)
    again = Vocabulary.from_json(json.dumps(json.loads(vocabulary.to_json())))
    assert again == vocabulary
    assert np.array_equal(again.encode(arrays).node_feats, vocabulary.encode(arrays).node_feats)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"node": 1}', '{"node": {}, "edge": {}}'])
def test_foreign_json_is_refused(text):
    with pytest.raises(DataError, match="not a feature vocabulary"):
        Vocabulary.from_json(text)
