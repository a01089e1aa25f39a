"""Predictions, intervals, sets and explanations of regression and multilabel runs."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.conformal import conformal_quantile
from egin_dgl.inference.trained_run import load_run

pytest.importorskip("rdkit")

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = ["cv.k=3", "trainer.epochs=6", "model.hidden_dim=8", "model.num_layers=1"]
TARGETS = {"regression": "size", "multilabel": "[has_n,long]"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Molecules of the example with what their SMILES say, some of it blank."""
    path = tmp_path_factory.mktemp("targets") / "targets.csv"
    with open(ROOT / "examples" / "molecules.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[:120]
    made = []
    for number, row in enumerate(rows):
        text = row["smiles"]
        labels = {"has_n": int("N" in text.upper()), "long": int(len(text) > 24), "size": len(text) + 0.5}
        made.append({"id": row["id"], "smiles": text, **labels} | ({"long": ""} if number % 5 == 0 else {}))
    pd.DataFrame(made).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def runs(run_here, table, tmp_path_factory):
    """A run for each task."""
    found = {}
    for task, target in TARGETS.items():
        found[task] = tmp_path_factory.mktemp(task)
        options = ["dataset=smiles", f"dataset.path={table}", f"dataset.target={target}"]
        run_here(found[task], *options, *SMALL)
    return found


@pytest.mark.parametrize("task, column", [("regression", "size"), ("multilabel", "has_n")])
def test_a_target_that_is_no_number_is_not_evaluated(task, column, runs, table, tmp_path, script):
    rows = pd.read_csv(table, dtype=str).head(20)
    rows.loc[[2, 5], column] = ["pending", "n.d."]
    rows.to_csv(tmp_path / "new.csv", index=False)
    done = script("predict", f"run={runs[task]}", "input=new.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"targets that task={task} cannot take, not evaluated: pending (1), n.d. (1)" in done.stdout
    found = pd.read_csv(tmp_path / "new_predictions.csv", dtype=str)
    assert found.loc[2, column] == "pending" and found.filter(regex="^p").notna().all(axis=None)


def test_a_regression_has_values_intervals_and_metrics(runs, table, tmp_path, script):
    done = script("predict", f"run={runs['regression']}", f"input={table}", "at_once=50", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(tmp_path / "targets_predictions.csv")
    assert list(found)[-5:] == ["predicted", "std", "low", "high", "reason"]
    rmse = np.sqrt(((found["predicted"] - found["size"]) ** 2).mean())
    rank = spearmanr(found["predicted"], found["size"]).statistic
    assert f"rmse {rmse:.3f}" in done.stdout and f"spearman {rank:.3f}" in done.stdout
    assert "calibrated" not in done.stdout
    # The interval is the quantile of the errors of all folds on their test graphs.
    tested = pd.read_csv(runs["regression"] / "predictions.csv")
    errors = sorted((tested["predicted"] - tested["label"]).abs())
    half = (found["high"] - found["low"]) / 2
    assert half.to_numpy() == pytest.approx(conformal_quantile(errors, 0.9), rel=1e-3)
    assert "Prediction intervals at the level 90 %" in (runs["regression"] / "card.md").read_text()


def test_several_labels_have_sets_and_metrics_of_each(runs, table, tmp_path, script):
    done = script("predict", f"run={runs['multilabel']}", f"input={table}", "level=0.8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(tmp_path / "targets_predictions.csv", dtype={"set_has_n": str, "set_long": str})
    for target in ("has_n", "long"):
        assert set(found[f"set_{target}"]) <= {"0", "1", "0|1"}
        known = found[found[target].notna()]
        value = roc_auc_score(known[target], known[f"p_{target}"])
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"  {target} (")]
        assert f"({len(known)}): auroc {value:.3f}" in line
    without = load_run(runs["multilabel"], level=None, folds=0).predict(["CCO", "C1CC", None])
    assert list(without) == ["smiles", "p_has_n", "p_long", "reason"]
    assert without["p_has_n"].isna().tolist() == [False, True, True]
    assert without["reason"].astype(bool).tolist() == [False, True, True]


def test_one_target_is_explained(runs):
    run = load_run(runs["multilabel"])
    with pytest.raises(ConfigError, match="predicts 2 targets: choose one with target=NAME of has_n, long"):
        run.explain("CCO")
    with pytest.raises(ConfigError, match="no target 'has_x'; valid: has_n, long"):
        run.explain("CCO", target="has_x")
    found = run.explain(["CCO", "CCN"], target="has_n")
    assert set(found["graph"]) == {"0", "1"} and len(found) == 2 * (3 + 2)
    assert found["value"].unique() == pytest.approx(run.predict(["CCO", "CCN"])["p_has_n"])
    # In the units of the target: the value itself falls by the contribution.
    run = load_run(runs["regression"], folds=0)
    nodes = run.explain("CCO").query("part == 'node'")
    whole, without = (run.predict(text)["predicted"][0] for text in ("CCO", "CC"))
    assert nodes["occlusion"].iloc[-1] == pytest.approx(whole - without, rel=1e-3, abs=1e-4)


def test_lists_frames_and_molecules_are_predicted_alike(runs):
    from rdkit import Chem

    run, smiles = load_run(runs["regression"]), ["CCO", "c1ccccc1N", "CC(=O)O"]
    frame = pd.DataFrame({"n": [1, 2, 3], "smiles": smiles}, index=["a", "b", "c"])
    whole, listed = run.predict(frame), run.predict(smiles)
    assert whole.index.tolist() == ["a", "b", "c"] and whole["n"].tolist() == [1, 2, 3]
    assert whole["predicted"].tolist() == listed["predicted"].tolist()
    molecules = [Chem.AddHs(Chem.MolFromSmiles(text)) for text in smiles]
    assert run.predict(molecules)["predicted"].to_numpy() == pytest.approx(listed["predicted"].to_numpy())
    vectors = run.embed([*smiles, "C1CC"])
    assert len(vectors) == 4 and vectors.iloc[3].isna().all() and vectors.iloc[:3].notna().all(axis=None)


def test_runs_of_different_tasks_are_not_averaged(runs):
    with pytest.raises(
        ConfigError, match=r"cannot be averaged: they have different task \(regression and multi"
    ):
        load_run([runs["regression"], runs["multilabel"]])
