"""A machine kept as arrays decides as the one that was fitted."""

import numpy as np
import pytest
import torch

from egin_dgl.errors import DataError
from egin_dgl.ewl.inputs import as_graph_set
from egin_dgl.ewl.kernel import WLKernel, make_svm
from egin_dgl.ewl.kernel_machine import KernelMachine, class_scores


# Of thirty classes some pairs all but tie, and vote by the last digit.
@pytest.mark.parametrize(
    ("kind", "name", "classes"),
    [
        ("linear", "MUTAG", 2),
        ("linear", "Cuneiform", 30),
        ("precomputed", "MUTAG", 2),
        ("precomputed", "Cuneiform", 3),
    ],
)
def test_the_arrays_decide_as_the_machine(dataset, kind, name, classes):
    data = dataset(name)
    chosen = np.flatnonzero(data.labels.numpy() < classes)
    graphs = as_graph_set(data, attributes=False).subset(chosen)
    labels = data.labels.numpy()[chosen]
    kernel = WLKernel(depth=3, normalize=True)
    counts = kernel.fit_transform(graphs)
    machine = make_svm(kind, C=10, depth=3)[1:].fit(counts, labels)
    expected = class_scores(machine.decision_function(counts), machine.classes_, data.info.classes)

    arrays = KernelMachine.of(kernel, machine).arrays()
    again = KernelMachine.from_arrays(WLKernel(depth=3, normalize=True), arrays)
    found = again.scores(graphs, data.info.classes)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_class_that_was_not_there_is_never_answered():
    scores = class_scores(np.array([[3.0, -1.0, 2.0]]), np.array([0, 2, 3]), 5)
    assert scores.tolist() == [[3.0, -2.0, -1.0, 2.0, -2.0]]


def test_arrays_of_something_else_are_refused():
    with pytest.raises(DataError, match="not a saved kernel machine"):
        KernelMachine.from_arrays(WLKernel(depth=2), {"coefficients": np.zeros(3)})
