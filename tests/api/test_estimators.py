"""Classifier and regressor keep scikit-learn's contract; regression, several labels, weights and molecules."""

import copy
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from egin_dgl.api import EGINClassifier, EGINRegressor
from egin_dgl.errors import DataError

SMALL = {"hidden_dim": 4, "num_layers": 1, "epochs": 3, "validation": 0.2}
NAN = float("nan")
# Those that need no data: graphs are not arrays, of which the others are about.
CHECKS = """check_do_not_raise_errors_in_init_or_set_params check_estimator_cloneable check_estimator_repr
check_estimator_tags_renamed check_get_params_invariance check_mixin_order check_no_attributes_set_in_init
check_parameters_default_constructible check_set_params check_valid_tag_types"""


def graphs_of(count=24):
    """Paths and cycles of several sizes."""
    return [(nx.path_graph if n % 2 else nx.cycle_graph)(3 + n // 2) for n in range(count)]


def targets_of(estimator, graphs):
    sizes = np.array([len(graph) for graph in graphs])
    return 0.5 * sizes if is_regressor(estimator) else np.where(sizes > np.median(sizes), "large", "small")


both = pytest.mark.parametrize("estimator", [EGINClassifier(**SMALL), EGINRegressor(**SMALL)], ids=repr)


@both
@pytest.mark.parametrize("check", CHECKS.split())
def test_a_check_of_scikit_learn_passes(estimator, check):
    getattr(estimator_checks, check)(type(estimator).__name__, clone(estimator))


@both
def test_the_contract_of_estimators_is_kept(numbers, estimator):
    graphs, estimator = graphs_of(), clone(estimator)
    y = targets_of(estimator, graphs)
    assert is_classifier(estimator) != is_regressor(estimator)
    methods = ["predict", "transform", *(["predict_proba"] if is_classifier(estimator) else [])]
    for method in [*methods, "explain"]:
        with pytest.raises(NotFittedError):
            getattr(estimator, method)(graphs)
    before, y_before = estimator.get_params(), copy.copy(y)
    assert estimator.fit(graphs, y) is estimator
    assert estimator.get_params() == before and (y == y_before).all()
    attributes = dict(vars(estimator))
    again, restored = clone(estimator).fit(graphs, list(y)), pickle.loads(pickle.dumps(estimator))
    order = np.random.default_rng(0).permutation(len(graphs))
    for method in methods:
        found = getattr(estimator, method)(graphs)
        assert len(found) == len(graphs)
        for other in (again, restored):
            assert np.array_equal(getattr(other, method)(graphs), found)
        shuffled = getattr(estimator, method)([graphs[i] for i in order])
        single = getattr(estimator, method)(graphs[:1])
        if found.dtype.kind == "f":
            np.testing.assert_allclose(shuffled, found[order], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(single, found[:1], rtol=1e-4, atol=1e-5)
    assert vars(estimator) == attributes
    assert estimator.score(graphs, y) <= 1 and len(cross_val_score(estimator, graphs, y, cv=2)) == 2
    vectors = clone(estimator).set_output(transform="pandas").fit(graphs, y).transform(graphs)
    assert list(vectors)[:2] == ["e0", "e1"] and len(vectors) == len(graphs)
    assert make_pipeline(estimator, "passthrough").fit_transform(graphs, y).shape == vectors.shape
    parts = estimator.explain(graphs[:2])
    assert set(parts["graph"]) == {"0", "1"} and set(parts["part"]) == {"node", "edge"}


def test_a_regressor_learns_values_in_their_units(numbers):
    graphs = graphs_of(40)
    sizes = np.array([1000.0 + 3 * len(graph) for graph in graphs])
    model = EGINRegressor(hidden_dim=16, num_layers=2, epochs=60, validation=0, dropout=0).fit(graphs, sizes)
    assert model.predict(graphs).shape == (40,) and model.score(graphs, sizes) > 0.5
    several = pd.DataFrame({"size": sizes, "odd": [NAN, 1.5] * 20})
    model = EGINRegressor(**SMALL).fit(graphs, several)
    assert model.predict(graphs).shape == (40, 2)
    assert set(model.explain(graphs[:1], target="odd")["target"]) == {"odd"}
    with pytest.raises(ValueError, match="choose one with target=NAME of size, odd"):
        model.explain(graphs[:1])


def test_a_classifier_takes_several_labels_some_missing(numbers):
    graphs = graphs_of()
    y = np.array([[n % 2, NAN if n % 3 else n % 4 < 2] for n in range(len(graphs))], dtype=float)
    model = EGINClassifier(**SMALL).fit(graphs, y)
    found = model.predict_proba(graphs)
    assert found.shape == (24, 2) and model.classes_.tolist() == [0, 1]
    assert np.array_equal(model.predict(graphs), found > 0.5)


@pytest.mark.parametrize("kind", [EGINClassifier, EGINRegressor])
def test_weights_are_those_of_the_loss(numbers, kind):
    """Equal weights change nothing, and graphs of weight 0 are as if left out."""
    graphs = graphs_of()
    model = kind(**SMALL | {"validation": 0})
    y = targets_of(model, graphs)
    answer = "predict_proba" if is_classifier(model) else "predict"

    def answers(graphs, y, weights=None):
        return getattr(clone(model).fit(graphs, y, sample_weight=weights), answer)(graphs_of(6))

    plain = answers(graphs, y)
    np.testing.assert_allclose(answers(graphs, y, [2.0] * 24), plain, rtol=1e-3, atol=1e-4)
    weights = np.array([1.0] * 20 + [0.0] * 4)
    part = answers(graphs[:20], y[:20], pd.Series(weights[:20]))
    odd = np.where(np.arange(24) < 20, y, y[::-1])
    np.testing.assert_allclose(answers(graphs, odd, weights), part, rtol=1e-3, atol=1e-4)
    assert not np.allclose(answers(graphs, y, np.linspace(0.01, 3, 24)), plain, atol=1e-4)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0] * 5, "inconsistent numbers of samples"),
        ([[1.0]] * 24, "sample_weight.shape"),
        ([-1.0] * 24, "not negative"),
        ([NAN] * 24, "finite"),
        ([0.0] * 24, "zeros only"),
    ],
)
def test_wrong_weights_are_value_errors(weights, message):
    graphs = graphs_of()
    with pytest.raises(ValueError, match=message):
        EGINRegressor(**SMALL).fit(graphs, np.arange(24.0), sample_weight=weights)
    with pytest.raises(ValueError, match="does not support sample_weight"):
        EGINClassifier(model="ewl_kernel").fit(graphs, ["a", "b"] * 12, sample_weight=[1.0] * 24)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "the target y is None"),
        (["a", "b"] * 12, "y must hold numbers"),
        ([1.0, np.inf] * 12, "contains infinity"),
        (np.zeros((24, 2, 2)), "1d or 2d array"),
        ([NAN] * 24, "no value to learn from"),
        ([1.0] * 5, "inconsistent numbers of samples"),
    ],
)
def test_wrong_values_are_value_errors(y, message):
    with pytest.raises(ValueError, match=message):
        EGINRegressor(**SMALL).fit(graphs_of(), y)


def test_molecules_of_rdkit_and_invalid_ones(numbers):
    Chem = pytest.importorskip("rdkit.Chem")
    smiles = ["CCO", "CCN", "CC(=O)O", "c1ccccc1", "CCCl", "C1CC", "CCC", "OCC(N)C"]
    molecules = [Chem.MolFromSmiles(text) for text in smiles]  # None for the invalid one
    y = ["a", "b"] * 4
    options = {"hidden_dim": 4, "num_layers": 1, "epochs": 2, "validation": 0, "features": "rich"}
    with pytest.raises(DataError, match="molecule 5: .*; on_invalid='skip' leaves such molecules out"):
        EGINClassifier(**options).fit(smiles, y)
    model = EGINClassifier(**options, on_invalid="skip").fit(molecules, y)
    assert any("charge" in name for name in model.fold_.info.node_names)
    found = model.predict_proba(smiles)
    assert np.isnan(found).any(axis=1).nonzero()[0].tolist() == [5]
    np.testing.assert_allclose(model.predict_proba(molecules), found)
    assert [value is None for value in model.predict(smiles)] == [number == 5 for number in range(8)]
    for wrong in ({"features": "poor"}, {"on_invalid": "ignore"}):
        with pytest.raises(ValueError, match="parameter must be a str among"):
            EGINClassifier(**options | wrong).fit(smiles, y)
