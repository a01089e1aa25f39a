"""A kernel machine restored from arrays gives the decision values of the fitted one."""

import numpy as np
import pytest
import torch

from egin_dgl.errors import DataError
from egin_dgl.ewl.inputs import as_graph_set
from egin_dgl.ewl.kernel import KernelMachine, WLKernel, _to_logits, make_svm


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

    arrays = KernelMachine.from_pipeline(kernel, machine).arrays()
    again = KernelMachine.from_arrays(WLKernel(depth=3, normalize=True), arrays)
    found = again.logits(graphs, data.info.classes)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_class_without_training_graphs_is_lowest():
    logits = _to_logits(np.array([[3.0, -1.0, 2.0]]), np.array([0, 2, 3]), 5)
    assert logits.tolist() == [[3.0, -2.0, -1.0, 2.0, -2.0]]


def test_invalid_arrays_are_an_error():
    with pytest.raises(DataError, match="not a saved kernel machine"):
        KernelMachine.from_arrays(WLKernel(depth=2), {"coefficients": np.zeros(3)})
