"""Kernels and forests in the app, for every task: histories, resuming, refits, and loaded models with the logits of the run."""

import csv
import os
from pathlib import Path

import pytest
import torch

from egin_dgl.cli.refit import plan_refit, train_refit
from egin_dgl.data import load_smiles
from egin_dgl.data.splits import load_folds
from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.history import selected_record
from egin_dgl.inference.trained_fold import load_fold
from egin_dgl.runs.reader import read_run
from egin_dgl.runs.run_dir import RunDir

TARGETS = {"multiclass": "kind", "multilabel": "[oxygen,ring]", "regression": "[mass,carbons]"}
MODELS = {
    "ewl_forest": ("model.num_trees=10",),
    "morgan_forest": ("model.num_trees=10", "model.bins=256"),
    "ewl_kernel": ("model.penalties=[0.1,10]", "model.depth=2"),
    "precomputed": ("model=ewl_kernel", "model.kind=precomputed", "model.penalties=[1]", "model.depth=2"),
}


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    """Sixty small molecules with targets of every task, some missing."""
    pytest.importorskip("rdkit")
    path = tmp_path_factory.mktemp("molecules") / "molecules.csv"
    heads, tails = ["", "O", "N", "c1ccccc1", "OC(=O)", "Cl"], ["C" * n for n in range(1, 11)]
    rows = []
    for number, (head, tail) in enumerate((head, tail) for tail in tails for head in heads):
        oxygen, ring = str(int("O" in head)), str(int("c1" in head))
        rows.append(
            {
                "smiles": head + tail,
                "kind": "acid" if "=O" in head else "ring" if "c1" in head else "other",
                "oxygen": oxygen if number % 7 else "",
                "ring": ring if number % 5 else "",
                "mass": f"{12.5 * len(head + tail)}" if number % 4 else "",
                "carbons": f"{len(tail) + 0.5}",
            }
        )
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def options(model, task, path):
    target = f"dataset.target={TARGETS[task]}"
    return [
        f"model={model}",
        *MODELS[model],
        "dataset=smiles",
        f"dataset.path={path}",
        target,
        f"task={task}",
        "cv.k=3",
    ]


@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("model", MODELS)
def test_every_task(run_here, tmp_path, molecules, model, task):
    """The model is better than a constant, and loaded it computes the logits of the run."""
    chosen = options(model, task, molecules)
    chosen = chosen[1:] if model == "precomputed" else chosen
    summary = run_here(tmp_path / "run", *chosen)
    assert summary["task"] == task
    result = summary["protocols"]["selected"]
    better = result["mean"] > summary["baseline"]
    assert better == (task != "regression")  # RMSE is smaller, accuracy and AUROC are larger
    has_losses = all(
        summary["metrics"][name]["mean"] is not None
        for name in ("log_loss", "brier")
        if name in summary["metrics"]
    )
    assert has_losses == ("forest" in model or task == "regression")
    assert summary["protocols"]["last"] is None
    dataset = load_smiles(str(molecules), target=TARGETS[task].strip("[]").split(","), task=task)
    run = RunDir(tmp_path / "run")
    folds = load_folds(run.folds, dataset.labels.numpy())
    for number, fold_result in read_run(run.path).results.items():
        expected = fold_result.test_logits[selected_record(fold_result.history).epoch - 1]
        test = torch.as_tensor(folds.split(number, True).test)
        found = load_fold(run.fold(number)).logits(dataset)[test]
        torch.testing.assert_close(
            found, expected, rtol=0 if "forest" in model else 1e-9, atol=0 if "forest" in model else 1e-6
        )


def test_a_forest_resumes_and_is_refit(run_here, tmp_path, molecules, capsys):
    chosen = options("morgan_forest", "multilabel", molecules)
    summary = run_here(tmp_path, *chosen)
    (tmp_path / "summary.json").unlink()
    (tmp_path / "fold_01" / "last.pt").unlink()
    assert run_here(tmp_path, *chosen)["protocols"] == summary["protocols"]
    refit = train_refit(plan_refit(RunDir(tmp_path)), tmp_path / "refit")["refit"]
    assert refit["epochs"] is None and refit["C"] is None and refit["graphs"] == 58
    assert "Morgan forest on all 58 graphs of molecules: as in " in capsys.readouterr().out
    card = (tmp_path / "card.md").read_text()
    assert "epochs, batch size" not in card


def test_a_forest_may_be_monitored_by_its_probabilities(run_here, tmp_path, molecules):
    chosen = options("ewl_forest", "multiclass", molecules)
    summary = run_here(
        tmp_path, *chosen, "trainer.monitor=log_loss", "trainer.class_weights=balanced", "cv.fold=0"
    )
    assert summary["metric"] == "log_loss" and 0 < summary["validation_score"] < 5
    assert summary["calibration"]["log_loss"]["before"] is not None
    with pytest.raises(
        ConfigError, match="trainer.monitor=log_loss needs probabilities, which the E-WL kernel has not"
    ):
        run_here(tmp_path / "k", *options("ewl_kernel", "multiclass", molecules), "trainer.monitor=log_loss")


def test_combinations_that_a_forest_has_not(run_here, tmp_path, molecules):
    chosen = options("ewl_forest", "multiclass", molecules)
    with pytest.raises(ConfigError, match="cv=nested is for networks: use cv=ten_fold for the E-WL forest"):
        run_here(tmp_path / "nested", *chosen, "cv=nested")
    with pytest.raises(ConfigError, match="the E-WL forest needs the graphs as they are: use ewl=none"):
        run_here(tmp_path / "colors", *chosen, "ewl=colors")
    with pytest.raises(ConfigError, match="model=morgan_forest is for molecules"):
        run_here(tmp_path / "bonds", "model=morgan_forest", "dataset=bonds", "dataset.graphs=20")
    assert not list(tmp_path.rglob("fold_*"))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ewl_forest", "morgan_forest"])
@pytest.mark.parametrize(
    ("file", "target", "task", "bound"),
    [("esol.csv", "log_solubility", "regression", 1.4), ("bace.csv", "inhibitor", "multiclass", 0.75)],
)
def test_forests_learn_from_real_molecules(run_here, tmp_path, model, file, target, task, bound):
    """RMSE of the mean is 2.1 on ESOL; accuracy of the majority is 0.54 on BACE."""
    path = Path(os.environ.get("EGIN_MOLECULES", "")) / file
    if not path.is_file():
        pytest.skip(f"{file} of MoleculeNet is not here: set EGIN_MOLECULES to a directory that has it")
    chosen = [
        "dataset=smiles",
        f"dataset.path={path}",
        f"dataset.target={target}",
        "cv=holdout",
        "model.num_trees=50",
    ]
    mean = run_here(tmp_path, f"model={model}", *chosen)["protocols"]["selected"]["mean"]
    assert mean < bound if task == "regression" else mean > bound
