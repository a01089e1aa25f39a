"""The app on graphs whose classes only edge features distinguish."""

import numpy as np
import pytest

from egin_dgl.data import bonds
from egin_dgl.data.splits import load_folds
from egin_dgl.ewl import refine
from egin_dgl.runs.run_dir import RunDir

VARIANTS = [("egin", "true"), ("egin_c", "false"), ("egin_e", "true")]
VARIANTS += [pytest.param("egin_m", "false", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("model", "eps"), VARIANTS)
def test_every_variant_learns_from_edge_features(run_here, model, eps, tmp_path):
    options = [f"model={model}", f"model.learn_eps={eps}", "dataset=bonds", "cv=holdout", "trainer.epochs=40"]
    summary = run_here(tmp_path, *options)
    assert summary["protocols"]["selected"]["mean"] == 1.0
    assert summary["protocols"]["last"]["mean"] == 1.0


@pytest.mark.parametrize("model", ["egin_e"])
def test_without_edge_features_accuracy_stays_at_chance(run_here, model, tmp_path):
    options = [
        f"model={model}",
        "dataset=bonds",
        "dataset.edge_features=constant",
        "cv=holdout",
        "trainer.epochs=15",
    ]
    summary = run_here(tmp_path, *options)
    least, most = accuracy_bounds(RunDir(tmp_path))
    assert 0.25 <= least <= summary["protocols"]["selected"]["mean"] <= most <= 0.75


def accuracy_bounds(run):
    """Smallest and largest test accuracy of predictions that are equal for graphs of equal structure."""
    graphs = bonds(edge_features="constant")
    test = load_folds(run.folds, graphs.labels.numpy(), "bonds").split(0, validation=True).test
    skeletons, labels = refine(graphs).graph_classes()[test], graphs.labels.numpy()[test]
    counts = [np.bincount(labels[skeletons == skeleton], minlength=2) for skeleton in np.unique(skeletons)]
    return tuple(sum(map(bound, counts)) / len(test) for bound in (np.min, np.max))
