"""The estimator with graphs of every library, and in scikit-learn's tools."""

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from egin_dgl.api import EGINClassifier
from egin_dgl.data import bonds
from egin_dgl.errors import ConfigError, DataError

SMALL = {"hidden_dim": 8, "num_layers": 2, "epochs": 6}


def as_networkx(graph):
    made = nx.Graph()
    for node, kind in enumerate(graph.ndata["feat"].argmax(1).tolist()):
        made.add_node(node, atom=("ring", "pendant")[kind])
    ends = zip(
        *(side.tolist() for side in graph.edges()), graph.edata["feat"].argmax(1).tolist(), strict=True
    )
    made.add_edges_from((a, b, {"bond": ("single", "double")[kind]}) for a, b, kind in ends)
    return made


def as_dgl(graph):
    graph = graph.local_var()
    graph.ndata["atom"], graph.edata["bond"] = (
        graph.ndata.pop("feat").argmax(1),
        graph.edata.pop("feat").argmax(1),
    )
    return graph


def as_pyg(graph):
    torch_geometric = pytest.importorskip("torch_geometric", reason="PyG's graphs need PyG")
    import torch

    return torch_geometric.data.Data(
        x=graph.ndata["feat"].argmax(1)[:, None],
        edge_index=torch.stack(graph.edges()),
        edge_attr=graph.edata["feat"].argmax(1)[:, None],
    )


def graphs_and_classes(kind=as_networkx, graphs=40):
    dataset = bonds(graphs=graphs)
    pairs = [dataset[number] for number in range(graphs)]
    return [kind(graph) for graph, _ in pairs], np.array(["alternating", "scrambled"])[
        [int(y) for _, y in pairs]
    ]


@pytest.mark.parametrize("kind", [as_networkx, as_dgl, as_pyg])
def test_it_learns_from_graphs_of_every_library(numbers, kind):
    graphs, y = graphs_and_classes(kind)
    model = EGINClassifier(hidden_dim=16, num_layers=2, epochs=30).fit(graphs, y)
    found = model.predict_proba(graphs)
    assert found.shape == (40, 2) and np.allclose(found.sum(axis=1), 1)
    assert model.classes_.tolist() == ["alternating", "scrambled"]
    assert (model.predict(graphs) == model.classes_[found.argmax(axis=1)]).all()
    assert model.score(graphs, y) > 0.8


def test_it_works_in_cross_validation_grid_search_and_pipelines(numbers):
    """Also with models in the grid that have no width."""
    graphs, y = graphs_and_classes()
    model = EGINClassifier(epochs=2)
    assert len(cross_val_score(model, graphs, y, cv=2, scoring="roc_auc")) == 2
    grid = {"model": ["egin", "ewl_kernel", "majority"], "hidden_dim": [4, 8]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(graphs, y)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert set(search.best_params_) == {"model", "hidden_dim"} and len(search.predict(graphs[:3])) == 3
    assert make_pipeline("passthrough", model).fit(graphs, y).predict(graphs[:2]).shape == (2,)


def test_clones_and_pickles_predict_the_same(numbers):
    graphs, y = graphs_and_classes()
    model = EGINClassifier(**SMALL, options={"trainer.ema_decay": None, "ewl": "colors"}, seed=3)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict(graphs)
    model.fit(graphs, y)
    again = clone(model).fit(graphs, y)
    assert np.array_equal(model.predict_proba(graphs), again.predict_proba(graphs))
    assert np.array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(graphs), model.predict_proba(graphs)
    )


@pytest.mark.parametrize("y", [[3, 10], [True, False]])
def test_classes_keep_their_type_and_are_sorted(numbers, y):
    graphs, _ = graphs_and_classes()
    model = EGINClassifier(**SMALL, validation=0).fit(graphs, [y[number % 2] for number in range(40)])
    assert model.classes_.tolist() == sorted(y)
    assert set(model.predict(graphs).tolist()) <= set(y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"edge_dim": 4, "model": "gin"}, ValueError, "edge_dim"),
        ({"model": "egin_x"}, ValueError, "model has no option 'egin_x'; valid: .*egin_c"),
        ({"validation": 0.9}, ConfigError, "validation must be a fraction"),
        ({"epochs": 0}, ConfigError, "epochs"),
        ({"node_labels": ["mass"]}, DataError, "mass"),
    ],
)
def test_invalid_arguments_are_errors(options, error, message):
    graphs, y = graphs_and_classes(graphs=20)
    with pytest.raises(error, match=message):
        EGINClassifier(**options).fit(graphs, y)
    with pytest.raises(DataError, match="two or more classes"):
        EGINClassifier().fit(graphs, ["x"] * 20)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.random.default_rng(0).random(20), "Unknown label type: .?continuous"),
        ([0.0, float("nan")] * 10, "contains NaN"),
        (["a", None] * 10, "contains NaN"),
        (["a", float("nan")] * 10, "contains NaN"),
        (None, "the target y is None"),
        ([[0, 2], [1, 0]] * 10, "Unknown label type"),
        ([["a", "b"], ["b", "a"]] * 10, "Unknown label type"),
        (np.zeros((20, 2, 2)), "array with dim 3"),
        ([0, 1] * 9, "inconsistent numbers of samples"),
    ],
)
def test_invalid_classes_are_value_errors(y, message):
    graphs, _ = graphs_and_classes(graphs=20)
    with pytest.raises(ValueError, match=message):
        EGINClassifier().fit(graphs, y)


def test_a_string_a_graph_or_a_table_is_not_a_list_of_graphs(numbers):
    graphs, y = graphs_and_classes(graphs=20)
    model = EGINClassifier(model="majority", epochs=1).fit(graphs, pd.Series(y))
    table = pd.DataFrame({"smiles": ["CCO", "CCC"]})
    several = (("CCO", [0, 1, 0]), (graphs[0], y), (table, [0, 1]), (np.zeros((2, 3)), [0, 1]), (None, y))
    for wrong, labels in several:
        for call in (lambda: model.fit(wrong, labels), lambda: model.score(wrong, labels)):  # noqa: B023
            with pytest.raises(ValueError, match="Expected a list of graphs"):
                call()
        with pytest.raises(ValueError, match="Expected a list of graphs"):
            model.predict(wrong)


def test_labels_never_seen_in_training_count_as_wrong(numbers):
    graphs, y = graphs_and_classes(graphs=20)
    model = EGINClassifier(model="majority", epochs=1).fit(graphs, y)
    predicted = model.predict(graphs)
    assert model.score(graphs, predicted) == 1
    assert model.score(graphs, [*predicted[:15], *["never seen"] * 5]) == 0.75
