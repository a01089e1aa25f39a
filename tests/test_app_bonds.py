"""The whole app on graphs whose classes only edges tell apart."""

import numpy as np
import pytest

from egin_dgl.data import bonds
from egin_dgl.data.splits import load_folds
from egin_dgl.ewl import refine
from egin_dgl.runs.run_dir import RunDir

VARIANTS = [(model, eps) for model in ("egin", "egin_c", "egin_e") for eps in ("false", "true")]


@pytest.mark.parametrize(("model", "eps"), VARIANTS)
def test_every_variant_learns_what_only_edges_tell(run_here, model, eps, tmp_path):
    options = [f"model={model}", f"model.learn_eps={eps}", "dataset=bonds", "cv=holdout", "trainer.epochs=40"]
    summary = run_here(tmp_path, *options)
    assert summary["protocols"]["selected"]["mean"] == 1.0
    assert summary["protocols"]["last"]["mean"] == 1.0


@pytest.mark.parametrize("model", ["egin", "egin_c", "egin_e"])
def test_without_edge_features_it_stays_at_chance(run_here, model, tmp_path):
    options = [
        f"model={model}",
        "dataset=bonds",
        "dataset.use_edge_features=false",
        "cv=holdout",
        "trainer.epochs=15",
    ]
    summary = run_here(tmp_path, *options)
    least, most = right_by_skeleton(RunDir(tmp_path))
    assert 0.25 <= least <= summary["protocols"]["selected"]["mean"] <= most <= 0.75


def right_by_skeleton(run):
    """How much of the test part is right, at least and at most, for whoever gives graphs of one skeleton one answer."""
    graphs = bonds(use_edge_features=False)
    part = load_folds(run.folds, graphs.labels.numpy(), "bonds").split(0, validation=True).test
    skeletons, labels = refine(graphs).graph_classes()[part], graphs.labels.numpy()[part]
    counts = [np.bincount(labels[skeletons == skeleton], minlength=2) for skeleton in np.unique(skeletons)]
    return tuple(sum(map(bound, counts)) / len(part) for bound in (np.min, np.max))
