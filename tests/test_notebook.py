"""The repr of public objects fits on a line or two of a notebook and contains no tensors."""

import torch

from egin_dgl.data import bonds
from egin_dgl.data.splits import make_folds
from egin_dgl.evaluation.history import FoldResult
from egin_dgl.ewl import as_graph_set, audit, distinguish, refine
from egin_dgl.runs.reader import find_runs


def check_repr(thing, *expected):
    text = repr(thing)
    assert len(text) <= 240 and "\n" not in text, text
    assert text.startswith(type(thing).__name__) and all(word in text for word in expected), text


def test_repr_is_short():
    data = bonds(graphs=60)
    folds = make_folds(data.labels.numpy(), 3, 0, "bonds")
    check_repr(data, "'bonds'", "60 graphs", "2 classes")
    check_repr(data.info, "node_dim=2", "edge_dim=2", "classes=2")
    check_repr(as_graph_set(data), "60 graphs")
    check_repr(refine(data), "e-wl", "stable at depth")
    check_repr(refine(data, depth=0), "not yet stable")
    check_repr(audit(data, depth=2), "60 graphs", "duplicates")
    check_repr(distinguish(data[0][0], data[1][0]), "not isomorphic")
    check_repr(folds, "seed 0")
    check_repr(folds.split(0, True), "20 train, 20 validation, 20 test")
    check_repr(FoldResult(3, [], torch.zeros(0, 20, 2), torch.zeros(20), 17), "fold 3", "20 test graphs")


def test_repr_of_a_run_names_model_and_dataset(run_here, tmp_path):
    run_here(
        tmp_path, "dataset=bonds", "dataset.graphs=12", "cv=holdout", "trainer=smoke", "model.hidden_dim=4"
    )
    (run,) = find_runs([tmp_path])
    assert repr(run).startswith("Run(EGIN-E on bonds, 1 fold") and str(tmp_path) in repr(run)
    check_repr(run.results[0], "fold 0", "2 epochs")
