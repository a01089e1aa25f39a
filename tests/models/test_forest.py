"""Forests: the predictions of scikit-learn from plain arrays, every task, missing targets, and arrays that are no trees."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from egin_dgl.data import DatasetInfo, GraphDataset, bonds
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.models.estimators import trees
from egin_dgl.models.estimators.forest import MIN_PROBABILITY, EWLForest, MorganForest
from egin_dgl.models.estimators.trees import LEAF, MAX_DEPTH, Trees
from egin_dgl.options import validate_options

SMILES = ["C", "CCO", "c1ccccc1", "CC(=O)O", "CCN", "CCCCCl", "O=C=O", "c1ccncc1C"]


def info_of(task, targets=1, classes=0):
    return DatasetInfo(2, 2, classes, task=task, target_names=tuple("abcdefgh"[:targets]))


@pytest.fixture
def rows():
    """Counts (60, 40), most of them 0."""
    random = np.random.default_rng(0)
    return sparse.csr_array(random.poisson(0.5, size=(60, 40)).astype(np.float64))


def fit(task, rows, targets, classes=0, **options):
    width = 1 if targets.ndim == 1 else targets.shape[1]
    model = EWLForest(info_of(task, width, classes), num_trees=20, **options)
    return model, model.fit(rows, targets, None, seed=3)


def test_class_probabilities_are_those_of_scikit_learn(rows):
    labels = np.arange(60) % 3 + (np.arange(60) % 3 == 2)  # classes 0, 1 and 3 of 5
    _, machine = fit("multiclass", rows, labels, classes=5)
    expected = RandomForestClassifier(20, random_state=3).fit(rows, labels).predict_proba(rows)
    means = machine.trees.mean_values(rows)[:, 0]
    assert np.array_equal(means[:, [0, 1, 3]], expected) and not means[:, [2, 4]].any()
    torch.testing.assert_close(
        machine.outputs(rows).softmax(dim=1),
        torch.from_numpy(means.clip(MIN_PROBABILITY)),
        atol=3 * MIN_PROBABILITY,
        rtol=0,
    )


def test_values_and_labels_are_those_of_scikit_learn_on_the_graphs_that_have_them(rows):
    random = np.random.default_rng(1)
    values = random.normal(size=(60, 2))
    values[random.random((60, 2)) < 0.3] = np.nan
    labels = np.where(np.isnan(values), np.nan, values > 0)
    predicted = fit("regression", rows, values)[1].outputs(rows).numpy()
    logits = fit("multilabel", rows, labels)[1].outputs(rows)
    for target in range(2):
        known = ~np.isnan(values[:, target])
        regressor = RandomForestRegressor(20, max_features=1 / 3, random_state=3)
        expected = regressor.fit(rows[known], values[known, target]).predict(rows)
        assert np.array_equal(predicted[:, target], expected)
        classifier = RandomForestClassifier(20, random_state=3).fit(rows[known], labels[known, target])
        p = classifier.predict_proba(rows)[:, 1].clip(MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        np.testing.assert_allclose(logits[:, target].sigmoid().numpy(), p, rtol=1e-12)


def test_a_target_with_one_value_or_none_is_constant(rows):
    labels = np.stack([np.ones(60), np.zeros(60), np.full(60, np.nan), np.arange(60) % 2], axis=1)
    p = fit("multilabel", rows, labels)[1].outputs(rows).sigmoid()
    expected = torch.tensor([1 - MIN_PROBABILITY, MIN_PROBABILITY, 0.5], dtype=torch.float64)
    torch.testing.assert_close(p[:, :3], expected.expand(60, 3))
    assert p[:, 3].std() > 0.1


def test_predictions_do_not_depend_on_the_other_graphs(rows, monkeypatch):
    _, machine = fit("regression", rows, np.random.default_rng(2).normal(size=(60, 1)))
    together = machine.outputs(rows)
    monkeypatch.setattr(trees, "MAX_CELLS", 200)
    assert torch.equal(machine.outputs(rows), together)
    assert torch.equal(torch.cat([machine.outputs(rows[[number]]) for number in range(60)]), together)


def test_balanced_weights_raise_the_probability_of_the_rare_class(rows):
    labels = (np.arange(60) % 10 == 0).astype(np.int64)
    model = EWLForest(info_of("multiclass", classes=2), num_trees=20, min_samples_leaf=5)
    p = [
        model.fit(rows, labels, None, 0, balanced).outputs(rows).softmax(dim=1)[:, 1].mean()
        for balanced in (0, 1)
    ]
    assert p[1] > p[0] + 0.1


@pytest.fixture
def saved(rows):
    """A model and the arrays of its trees."""
    model, machine = fit("regression", rows, np.random.default_rng(2).normal(size=(60, 1)))
    return model, {name: array.copy() for name, array in machine.arrays().items()}


def test_restored_trees_give_the_same_digits(rows, saved):
    model, arrays = saved
    again = model.load_machine(arrays, num_features=40)
    fresh = fit("regression", rows, np.random.default_rng(2).normal(size=(60, 1)))[1]
    assert torch.equal(again.outputs(rows), fresh.outputs(rows))


@pytest.mark.parametrize(
    ("name", "position", "value", "reason"),
    [
        ("left", 0, 0, "a child is not behind its node"),
        ("left", 0, 2, "a node has two parents"),
        ("right", 0, 10**6, "a node is missing"),
        ("right", 0, -1, "a node has one child"),
        ("left", 0, -5, "a node is missing"),
        ("roots", (0, 0), 1, "a node has two parents"),
        ("feature", 0, 40, "a feature is not one of 40"),
        ("threshold", 0, np.nan, "a number is not finite"),
    ],
)
def test_arrays_that_are_no_trees_are_refused(saved, name, position, value, reason):
    model, arrays = saved
    if value == 2:
        value = arrays["trees.right"][0]
    arrays[f"trees.{name}"][position] = value
    with pytest.raises(DataError, match=f"not a saved forest: {reason}"):
        model.load_machine(arrays, num_features=40)


def test_arrays_of_other_shapes_and_types_are_refused(saved):
    model, arrays = saved
    with pytest.raises(DataError, match="'feature' is missing"):
        model.load_machine({name: a for name, a in arrays.items() if name != "trees.feature"}, 40)
    with pytest.raises(DataError, match="left is an array of float64"):
        model.load_machine(arrays | {"trees.left": arrays["trees.left"] + 0.5}, 40)
    with pytest.raises(DataError, match="threshold has 3 rows"):
        model.load_machine(arrays | {"trees.threshold": np.zeros(3)}, 40)
    with pytest.raises(DataError, match="not a saved forest of 1 outputs"):
        model.load_machine(arrays | {"trees.value": np.zeros((len(arrays["trees.left"]), 2))}, 40)


def test_a_chain_is_too_deep():
    nodes = 2 * MAX_DEPTH + 5
    number, inner = np.arange(nodes), np.arange(nodes) % 2 == 0
    inner[-1] = False
    chain = Trees(
        roots=np.array([[0]]),
        left=np.where(inner, number + 1, LEAF),
        right=np.where(inner, number + 2, LEAF),
        feature=np.zeros(nodes, dtype=np.int64),
        threshold=np.zeros(nodes),
        value=np.zeros((nodes, 1)),
    )
    with pytest.raises(DataError, match="a tree is deeper than 1000"):
        Trees.from_arrays(vars(chain), 1)


def test_colours_of_edges_are_features():
    """Classes of `bonds` differ in edge labels only."""
    data = bonds(graphs=40)
    correct = {}
    for method in ("e-wl", "1-wl"):
        model = EWLForest(data.info, method, num_trees=20)
        features = model.make_features()
        machine = model.fit(
            features.fit_transform(model.read(data, range(30))), data.labels[:30].numpy(), None, 0
        )
        logits = machine.outputs(features.transform(model.read(data, range(30, 40))))
        correct[method] = int((logits.argmax(dim=1) == data.labels[30:]).sum())
    assert correct["e-wl"] == 10 and correct["1-wl"] < 9


def test_morgan_fingerprints_are_those_of_rdkit():
    rdkit = pytest.importorskip("rdkit.Chem")
    from rdkit.Chem import rdFingerprintGenerator

    data = GraphDataset.from_graphs(SMILES, [0, 1] * 4)
    model = MorganForest(data.info, radius=1, bins=32)
    rows = model.make_features().transform(model.read(data)).toarray()
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=1, fpSize=32)
    expected = [generator.GetCountFingerprint(rdkit.MolFromSmiles(text)).ToList() for text in SMILES]
    assert rows.tolist() == expected
    assert model.read(data, [2, 0]) == [SMILES[2], SMILES[0]]


def test_morgan_fingerprints_need_smiles():
    data = bonds(graphs=4)
    model = MorganForest(data.info)
    with pytest.raises(ConfigError, match="model=morgan_forest is for molecules: use dataset=smiles"):
        model.check_dataset(data)
    with pytest.raises(DataError, match="needs molecules as SMILES"):
        model.read(replace(data, smiles=("C",)))


def test_no_features_to_split_by_is_an_error():
    with pytest.raises(ConfigError, match="max_features must be greater than 0 or .*, got 0.0"):
        validate_options(EWLForest, {"max_features": 0.0})
