"""Features are attributes ‖ one-hot labels; new data are encoded with the vocabulary of the training set."""

import json

import numpy as np
import pytest

from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import DataError

EDGES = {"src": np.array([0, 1, 1, 2]), "dst": np.array([1, 0, 2, 1])}


def make_arrays(nodes=4, edges=EDGES, **tables):
    """One graph; tables are node_labels, edge_attributes, node_label_names, …"""
    columns = {}
    for side in ("node", "edge"):
        own = {key.removeprefix(f"{side}_"): value for key, value in tables.items() if key.startswith(side)}
        columns[f"{side}s"] = RawColumns(
            **{
                key: value if isinstance(value, tuple) or value is None else np.asarray(value)
                for key, value in own.items()
            }
        )
    return GraphArrays(np.zeros(nodes, dtype=np.int64), **edges, graphs=1, **columns)


def path(**tables):
    """The path 0-1-2 and the isolated node 3."""
    return make_arrays(**tables)


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
    assert encoded.unseen == {}


def test_without_node_labels_degree_is_the_label():
    vocabulary = Vocabulary.fit(path())
    assert vocabulary.node.names == ("degree=0", "degree=1", "degree=2")
    assert vocabulary.encode(path()).node_feats.tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]


def test_constant_features():
    vocabulary = Vocabulary.fit(path(), node_features="constant")
    encoded = vocabulary.encode(path())
    assert vocabulary.node.names == vocabulary.edge.names == ("constant",)
    assert encoded.node_feats.tolist() == [[1]] * 4 and encoded.edge_feats.tolist() == [[1]] * 4


def test_edge_features_of_other_columns():
    arrays = path(edge_labels=[[1], [1], [3], [3]], edge_attributes=[[0.5]] * 4)
    constant = Vocabulary.fit(arrays, edges=RawColumns())
    assert constant.edge.attributes == 0
    assert constant.encode(arrays).edge_feats.tolist() == [[1]] * 4
    assert Vocabulary.fit(path(), edges=arrays.edges).edge == Vocabulary.fit(arrays).edge


def test_no_edge_left_still_has_a_column():
    none = np.zeros(0, dtype=np.int64)
    arrays = make_arrays(1, {"src": none, "dst": none}, edge_labels=np.zeros((0, 1)))
    assert Vocabulary.fit(arrays).encode(arrays).edge_feats.shape == (0, 1)


def test_unseen_labels_are_zero_and_counted(value=99):
    vocabulary = Vocabulary.fit(path(node_labels=[[1], [1], [3], [3]], edge_labels=[[1]] * 4))
    encoded = vocabulary.encode(
        path(node_labels=[[1], [value], [3], [value]], edge_labels=[[1], [1], [value], [1]])
    )
    assert encoded.node_feats.tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]
    assert encoded.unseen == {f"node label0={value}": 2, f"edge label0={value}": 1}


def test_unseen_degree_is_zero():
    vocabulary = Vocabulary.fit(path())
    star = GraphArrays(np.zeros(4, dtype=np.int64), np.array([1, 2, 3]), np.array([0, 0, 0]), graphs=1)
    encoded = vocabulary.encode(star)
    assert encoded.node_feats[0].tolist() == [0, 0, 0] and encoded.unseen == {"node degree=3": 1}


def test_other_columns_than_the_vocabulary_are_an_error():
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
def test_invalid_json(text):
    with pytest.raises(DataError, match="not a feature vocabulary"):
        Vocabulary.from_json(text)


# --- columns with names --------------------------------------------------------------------------------------------


def objects(rows):
    table = np.empty((len(rows), len(rows[0])), dtype=object)
    table[:] = rows
    return table


def molecule(atoms=("C", "C", "O", "N"), charges=(0.5, 0.0, -0.5, 1.0), **more):
    tables = {"node_labels": objects([[atom] for atom in atoms]), "node_label_names": ("atom",)}
    tables |= {"node_attributes": np.array(charges)[:, None], "node_attribute_names": ("charge",)}
    return make_arrays(**tables | more)


def test_named_columns_name_the_features():
    vocabulary = Vocabulary.fit(molecule())
    assert vocabulary.node.names == ("charge", "atom=C", "atom=N", "atom=O")
    assert Vocabulary.from_json(vocabulary.to_json()) == vocabulary
    assert vocabulary.encode(molecule()).node_feats.tolist()[2:] == [[-0.5, 0, 0, 1], [1, 0, 1, 0]]


def test_integers_and_strings_in_one_column_are_different_labels():
    vocabulary = Vocabulary.fit(molecule(node_labels=objects([["b"], [10], ["a"], [9]])))
    assert vocabulary.node.names == ("charge", "atom=9", "atom=10", "atom=a", "atom=b")


def test_columns_are_matched_by_name():
    vocabulary = Vocabulary.fit(molecule())
    plain = vocabulary.encode(molecule())
    more = molecule(
        node_labels=objects([["x", "C"], ["x", "Se"], ["y", "O"], ["x", "Se"]]),
        node_label_names=("ring", "atom"),
    )
    encoded = vocabulary.encode(more)
    assert encoded.node_feats[[0, 2]].tolist() == plain.node_feats[[0, 2]].tolist()
    assert encoded.unseen == {"node atom=Se": 2}
    assert encoded.notes[0] == "node column(s) ring not in the vocabulary, ignored"


def test_missing_column_is_an_error():
    with pytest.raises(
        DataError, match="the nodes have no column 'charge', which the vocabulary has; columns found: 'atom'"
    ):
        Vocabulary.fit(molecule()).encode(molecule(node_attributes=None, node_attribute_names=()))


def test_column_type_is_that_of_the_training_set():
    vocabulary = Vocabulary.fit(molecule())
    whole = {"node_attributes": None, "node_attribute_names": (), "node_label_names": ("charge", "atom")}
    whole["node_labels"] = objects([[1, "C"], [0, "C"], [-1, "O"], [2, "N"]])
    expected = vocabulary.encode(molecule(charges=(1, 0, -1, 2)))
    assert np.array_equal(vocabulary.encode(molecule(**whole)).node_feats, expected.node_feats)
    whole["node_labels"] = objects([["?", "C"]] * 4)
    with pytest.raises(DataError, match="node column 'charge' holds strings"):
        vocabulary.encode(molecule(**whole))
    # "1" among strings in training, 1 among integers now
    mixed = Vocabulary.fit(molecule(node_labels=objects([["1"], ["2"], ["x"], ["1"]])))
    assert mixed.encode(molecule(node_labels=np.array([[1], [2], [2], [3]]))).unseen == {"node atom=3": 1}


def test_too_many_labels_are_an_error_before_memory_is_allocated():
    nodes = 20_000
    unique = make_arrays(nodes, node_labels=np.arange(nodes)[:, None], node_label_names=("atom number",))
    with pytest.raises(DataError, match="'atom number' has 20,000 distinct values.*as an attribute"):
        Vocabulary.fit(unique)
    wide = make_arrays(nodes, node_labels=np.stack([np.arange(nodes) % 9_999] * 8, axis=1))
    with pytest.raises(DataError, match="20,000 nodes in 79,992 columns would take 6 GiB"):
        Vocabulary.fit(wide).encode(wide)
