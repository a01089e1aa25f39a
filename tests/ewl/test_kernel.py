"""The kernel: GraKeL's values, columns that new graphs share, pipelines that learn, and machines restored from arrays."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVR
from small_graphs import build, random_graphs

from egin_dgl.data import bonds
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.ewl import WLKernel, as_graph_set, make_svm, refine
from egin_dgl.ewl.inputs import concatenate
from egin_dgl.ewl.machine import KernelMachine, _to_logits, linear_function


def to_grakel(graphs):
    labels = np.unique(graphs.node_labels, axis=0, return_inverse=True)[1].reshape(-1)
    built = [({}, {}) for _ in range(len(graphs))]
    for node, graph in enumerate(graphs.graph_of_node.tolist()):
        built[graph][0][node], built[graph][1][node] = [], int(labels[node])
    for a, b in zip(graphs.src.tolist(), graphs.dst.tolist(), strict=True):
        built[graphs.graph_of_node[a]][0][a].append(b)
    return built


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(("name", "count"), [("MUTAG", 188), ("PTC_MR", 150), ("COX2_MD", 30)])
def test_1wl_gram_equals_that_of_grakel(name, count, normalize, dataset):
    graphs = as_graph_set(dataset(name)).subset(range(count))
    train, test = graphs.subset(range(0, count, 2)), graphs.subset(range(1, count, 2))
    # Its release for Python 3.13 does not import with numpy 2.
    grakel = pytest.importorskip("grakel", reason="grakel cannot be imported", exc_type=ImportError)
    theirs = grakel.WeisfeilerLehman(n_iter=4, base_graph_kernel=grakel.VertexHistogram, normalize=normalize)
    ours = WLKernel("1-wl", depth=4, normalize=normalize)
    all_of_them = to_grakel(graphs)
    rows = ours.fit_transform(train)
    np.testing.assert_allclose((rows @ rows.T).toarray(), theirs.fit_transform(all_of_them[0::2]), rtol=1e-9)
    np.testing.assert_allclose(ours.gram(test, train), theirs.transform(all_of_them[1::2]), rtol=1e-9)


@pytest.mark.parametrize("method", ["1-wl", "e-wl"])
@given(
    train=st.lists(random_graphs(), min_size=1, max_size=4),
    test=st.lists(random_graphs(), min_size=1, max_size=4),
)
@settings(max_examples=20, deadline=None)
def test_new_graphs_have_the_colors_of_joint_refinement(method, train, test):
    kernel = WLKernel(method, depth=3).fit(train)
    joint = refine(train + test, method, 3)
    counts = [joint.graph_histograms(d).toarray() for d in range(4)]
    known = [level[:, level[: len(train)].any(axis=0)] for level in counts]
    unseen = [level[len(train) :, ~level[: len(train)].any(axis=0)].sum() for level in counts]
    expected = np.concatenate(known, axis=1)[len(train) :]
    found = kernel.transform(test)
    assert np.array_equal(found.toarray(), expected)
    assert kernel.unseen_.tolist() == unseen
    assert np.array_equal(kernel.transform(train).toarray(), kernel.fit_transform(train).toarray())


def test_unseen_colors_are_dropped_and_counted():
    known = build(2, [(0, 1)], [0, 0], [0])
    new = build(3, [(0, 1), (1, 2)], [0, 0, 5], [0, 0])
    kernel = WLKernel("e-wl", depth=1).fit([known])
    assert kernel.transform([new]).toarray().tolist() == [[2, 1]] and kernel.unseen_.tolist() == [1, 2]
    assert kernel.transform([build(2, [(0, 1)], [0, 0], [9])]).toarray().tolist() == [[2, 0]]
    wl = WLKernel("1-wl", depth=1).fit([known])
    assert wl.transform([build(2, [(0, 1)], [0, 0], [9])]).toarray().tolist() == [[2, 2]]
    kernel = WLKernel("e-wl", depth=1, normalize=True).fit([known])
    row = kernel.transform([new]).toarray()
    assert row[0, 0] == pytest.approx(
        2 / np.sqrt(4 + 1 + 3)
    )  # depth 0: 2 and 1 nodes; depth 1: three colours


def test_a_stable_training_set_still_has_all_depths():
    pair = build(2, [(0, 1)], [0, 0], [0])
    longer = build(4, [(0, 1), (2, 3)], [0, 0, 0, 0], [0, 0])
    kernel = WLKernel("e-wl", depth=3)
    assert kernel.fit_transform([pair]).shape == (1, 4)
    assert kernel.transform([longer]).toarray().tolist() == [[4, 4, 4, 4]]


@pytest.mark.parametrize("kind", ["linear", "precomputed"])
def test_pipelines_on_bonds(kind):
    data = bonds(graphs=120)
    graphs, labels = as_graph_set(data), data.labels.numpy()
    scores = cross_val_score(make_svm(kind, depth=2), graphs, labels, cv=3)
    assert scores.mean() > 0.95
    without = cross_val_score(make_svm(kind, method="1-wl", depth=2), graphs, labels, cv=3)
    assert without.mean() <= 0.6


def test_both_kinds_of_svm_agree_on_a_real_set(dataset):
    data = dataset("MUTAG")
    graphs, labels = as_graph_set(data), data.labels.numpy()
    scores = [
        cross_val_score(make_svm(kind, C=10), graphs, labels, cv=5).mean()
        for kind in ("linear", "precomputed")
    ]
    assert min(scores) > 0.8 and abs(scores[0] - scores[1]) < 0.05


def test_parameters_and_errors():
    kernel = clone(WLKernel("1-wl", depth=2, normalize=True))
    assert kernel.get_params()["depth"] == 2
    with pytest.raises(ConfigError, match="1-wl or e-wl"):
        WLKernel("e-wl-ea").fit(bonds(graphs=4))
    with pytest.raises(ConfigError, match="linear or precomputed"):
        make_svm("rbf")
    assert concatenate([]).num_nodes == 0


# With 30 classes some pairs of an SVC are nearly tied, and rounding decides the vote.
@pytest.mark.parametrize(
    ("kind", "name", "classes"),
    [
        ("linear", "MUTAG", 2),
        ("linear", "Cuneiform", 30),
        ("precomputed", "MUTAG", 2),
        ("precomputed", "Cuneiform", 3),
    ],
)
def test_restored_machine_gives_equal_decisions(dataset, kind, name, classes):
    data = dataset(name)
    chosen = np.flatnonzero(data.labels.numpy() < classes)
    graphs = as_graph_set(data, attributes=False).subset(chosen)
    labels = data.labels.numpy()[chosen]
    kernel = WLKernel(depth=3, normalize=True)
    counts = kernel.fit_transform(graphs)
    machine = make_svm(kind, C=10, depth=3)[1:].fit(counts, labels)
    expected = _to_logits(machine.decision_function(counts), machine.classes_, data.info.classes)

    arrays = KernelMachine.from_pipeline(machine, data.info.classes).arrays()
    again = WLKernel(depth=3, normalize=True)
    again.load(kernel.arrays())
    found = KernelMachine.from_arrays(arrays, data.info.classes, again.size).outputs(again.transform(graphs))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_class_without_training_graphs_is_lowest():
    logits = _to_logits(np.array([[3.0, -1.0, 2.0]]), np.array([0, 2, 3]), 5)
    assert logits.tolist() == [[3.0, -2.0, -1.0, 2.0, -2.0]]


def test_linear_regression_is_kernel_ridge(dataset):
    """A constant feature is the intercept, which counts as a coefficient."""
    counts = WLKernel(depth=2, normalize=True).fit_transform(dataset("MUTAG"))
    values = np.random.default_rng(0).normal(size=counts.shape[0])
    weights, intercept = linear_function(make_svm("linear", C=3, regression=True)[1:].fit(counts, values))
    gram = (counts @ counts.T).toarray() + 1
    expected = KernelRidge(alpha=1 / (2 * 3), kernel="precomputed").fit(gram, values).predict(gram)
    np.testing.assert_allclose(counts @ weights + intercept, expected, atol=1e-4)


def test_regression_on_the_gram_matrix_is_the_svr_of_scikit_learn(dataset):
    counts = WLKernel(depth=2, normalize=True).fit_transform(dataset("MUTAG"))
    values = np.random.default_rng(0).normal(size=counts.shape[0])
    machine = make_svm("precomputed", C=3, regression=True)[1:].fit(counts, values)
    weights, intercept = linear_function(machine)
    expected = SVR(C=3, kernel="linear").fit(counts.toarray(), values).predict(counts.toarray())
    np.testing.assert_allclose(counts @ weights + intercept, expected, atol=1e-2)
    np.testing.assert_allclose(counts @ weights + intercept, machine.predict(counts), atol=1e-9)


def test_invalid_arrays_are_an_error():
    with pytest.raises(DataError, match="not saved colours: 'depth1.own' is missing"):
        WLKernel(depth=2).load({"node_labels": np.zeros(3)})
    with pytest.raises(DataError, match="not a saved kernel machine: 'intercepts' is missing"):
        KernelMachine.from_arrays({"coefficients": np.zeros((1, 3))}, 2, 3)
    arrays = {"coefficients": np.zeros((1, 3)), "intercepts": np.zeros(1), "classes": np.arange(2)}
    with pytest.raises(DataError, match=r"coefficients \(1, 3\), 4 colours"):
        KernelMachine.from_arrays(arrays, 2, 4)
