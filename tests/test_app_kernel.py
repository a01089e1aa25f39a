"""Kernels and colours through the app: the same folds, protocols and tables as a network."""

import json

import numpy as np
import pytest
from running import SMALL

from egin_dgl.data import load_tu
from egin_dgl.data.folds import load_folds
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.ewl import duplicate_groups
from egin_dgl.training.history import read_history

BONDS = ["dataset=bonds", "dataset.graphs=80", "cv.k=4"]


def test_the_edged_kernel_learns_what_only_edges_tell_and_the_plain_one_does_not(run_here, tmp_path):
    edged = run_here(tmp_path / "e", *BONDS, "model=ewl_kernel", "model.depth=2")
    plain = run_here(tmp_path / "p", *BONDS, "model=wl_kernel", "model.depth=2")
    assert edged["model"] == "E-WL kernel" and plain["model"] == "1-WL kernel"
    assert edged["protocols"]["selected"]["mean"] == 1.0
    assert (
        plain["protocols"]["selected"]["mean"] <= 0.625
    )  # the best that any answer by the skeleton alone can get
    assert (tmp_path / "e" / "folds.json").read_text() == (tmp_path / "p" / "folds.json").read_text()


@pytest.mark.parametrize("kind", ["linear", "precomputed"])
def test_each_penalty_is_a_row_of_the_history(run_here, tmp_path, kind):
    options = [
        "model=ewl_kernel",
        f"model.kind={kind}",
        "model.penalties=[10,0.1]",
        "dataset=mutag",
        "cv=holdout",
    ]
    summary = run_here(tmp_path, *options)
    history = read_history(tmp_path / "fold_00" / "history.csv")
    assert [record.epoch for record in history] == [1, 2]
    assert history[0].train_accuracy <= history[1].train_accuracy == 1.0  # 0.1 comes first, 10 fits all
    assert summary["protocols"]["selected"]["mean"] > summary["majority_accuracy"]
    assert (tmp_path / "curves.png").exists() and (tmp_path / "confusion.png").exists()
    again = run_here(tmp_path, *options)
    assert again["protocols"] == summary["protocols"]


def test_wrong_options_are_told_before_any_fold(run_here, tmp_path):
    with pytest.raises(ConfigError, match="kind must be linear or precomputed, got 'rbf'"):
        run_here(tmp_path, *BONDS, "model=ewl_kernel", "model.kind=rbf")
    with pytest.raises(ConfigError, match="penalties must be positive numbers"):
        run_here(tmp_path, *BONDS, "model=ewl_kernel", "model.penalties=[0]")
    with pytest.raises(ConfigError, match="use ewl=none"):
        run_here(tmp_path, *BONDS, "model=ewl_kernel", "ewl=colors")
    assert not list(tmp_path.glob("fold_*"))


@pytest.mark.parametrize("encoding", ["onehot", "embedding", "hash"])
def test_colors_join_the_features_of_any_model_and_are_saved_with_it(run_here, tmp_path, encoding):
    from safetensors import safe_open

    run_here(
        tmp_path, *SMALL, "model=egin", "ewl=colors", f"ewl.encoding={encoding}", "ewl.depth=1", "cv.fold=0"
    )
    with safe_open(tmp_path / "fold_00" / "best.safetensors", "pt") as file:
        saved = json.loads(file.metadata()["egin_dgl"])["transforms"]["FittedColors"]
        shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    assert saved["settings"]["encoding"] == encoding and saved["settings"]["depth"] == 1
    assert ("embedding.weight" in shapes) == (encoding == "embedding")


def test_duplicates_stay_together_when_asked(run_here, tmp_path):
    try:
        data = load_tu("PTC_MR", url=None)
    except DataError:
        pytest.skip("PTC_MR, which has duplicates, is not here: set EGIN_DATA_ROOT to a folder that has it")
    groups = duplicate_groups(data)
    assert len(set(groups)) < len(groups)
    run_here(
        tmp_path,
        "dataset=ptc_mr",
        "cv.group_duplicates=true",
        "model=wl_kernel",
        "model.depth=1",
        "cv.fold=0",
    )
    parts = load_folds(tmp_path / "folds.json", data.labels.numpy(), "PTC_MR").parts
    assert sum(len(set(groups[part])) for part in parts) == len(set(groups))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1 and np.sum(sizes) == 344
