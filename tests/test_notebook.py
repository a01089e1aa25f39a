"""What a cell of a notebook shows of an object is a line or two, never its tensors."""

import torch

from egin_dgl.data import bonds
from egin_dgl.data.splits import make_folds
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.ewl import as_graph_set, audit, distinguish, refine
from egin_dgl.runs.reader import find_runs


def short(thing, *words):
    text = repr(thing)
    assert len(text) <= 240 and "\n" not in text, text
    assert text.startswith(type(thing).__name__) and all(word in text for word in words), text


def test_what_is_shown_is_short():
    data = bonds(graphs=60)
    folds = make_folds(data.labels.numpy(), 3, 0, "bonds")
    short(data, "'bonds'", "60 graphs", "2 classes")
    short(data.info, "node_dim=2", "edge_dim=2", "classes=2")
    short(as_graph_set(data), "60 graphs")
    short(refine(data), "e-wl", "stable at depth")
    short(refine(data, depth=0), "not yet stable")
    short(audit(data, depth=2), "60 graphs", "duplicates")
    short(distinguish(data[0][0], data[1][0]), "not isomorphic")
    short(folds, "3 parts", "seed 0")
    short(folds.split(0, True), "20 train, 20 validation, 20 test")
    short(FoldResult(3, [], torch.zeros(0, 20, 2), torch.zeros(20), 17), "fold 3", "20 test graphs")


def test_a_run_is_shown_by_what_it_is(run_here, tmp_path):
    run_here(
        tmp_path, "dataset=bonds", "dataset.graphs=12", "cv=holdout", "trainer=smoke", "model.hidden_dim=4"
    )
    (run,) = find_runs([tmp_path])
    assert repr(run) == f"Run(EGIN-E on bonds, 1 folds, complete, in {tmp_path})"
    short(run.results[0], "fold 0", "2 epochs")
