"""Predictions for files and graphs, by scripts/predict.py and in Python."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from egin_dgl.data import GraphDataset, bonds
from egin_dgl.errors import ConfigError
from egin_dgl.inference.predict_file import format_predictions, predict_file
from egin_dgl.inference.trained_run import load_run
from egin_dgl.parallel import use_processes
from egin_dgl.reporting.one_run.card import sibling_program, train_command, training_line
from egin_dgl.training.parallel.workers import chunk_processes, one_thread

ROOT = Path(__file__).resolve().parent.parent.parent
MOLECULES = [
    "dataset=smiles",
    f"dataset.path={ROOT / 'examples' / 'molecules.csv'}",
    "dataset.target=activity",
]


@pytest.fixture(scope="module")
def molecules(run_here, tmp_path_factory):
    """A run on the molecules of the example."""
    pytest.importorskip("rdkit")
    directory = tmp_path_factory.mktemp("molecules")
    small = ["cv.k=3", "trainer.epochs=15", "model.hidden_dim=16", "model.num_layers=2"]
    run_here(directory, *MOLECULES, *small)
    return directory


def test_predictions_csv_has_the_predictions_of_the_test_sets(trained, rows):
    directory = trained("model.hidden_dim=8")
    dataset = bonds(graphs=60)
    found = rows(directory / "predictions.csv")
    assert sorted(int(row["id"]) for row in found) == list(range(60))
    summary = json.loads((directory / "summary.json").read_text())
    correct = {str(fold): [] for fold in summary["fold_numbers"]}
    for row in found:
        assert row["label"] == dataset.info.class_names[dataset.labels[int(row["id"])]]
        values = {name: float(row[f"p_{name}"]) for name in dataset.info.class_names}
        assert sum(values.values()) == pytest.approx(1, abs=1e-4)
        assert values[row["predicted"]] == max(values.values())
        assert (row["chosen_on"], row["calibrated"]) == ("validation", "true")
        correct[row["fold"]].append(row["label"] == row["predicted"])
    per_fold = [sum(hits) / len(hits) for hits in correct.values()]
    assert per_fold == pytest.approx(summary["protocols"]["selected"]["per_fold"])


def test_without_validation_predictions_are_of_the_last_epoch(trained, rows):
    found = rows(
        trained("cv=paper", "cv.k=3", "trainer.epochs=2", "trainer.batch_size=16") / "predictions.csv"
    )
    assert {(row["epoch"], row["chosen_on"], row["calibrated"]) for row in found} == {("2", "last", "false")}


def test_a_file_of_molecules_is_predicted(molecules, tmp_path, rows, script):
    done = script(
        "predict", f"run={molecules}", f"input={ROOT / 'examples' / 'new_molecules.csv'}", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "new_molecules_predictions.csv")
    given = rows(ROOT / "examples" / "new_molecules.csv")
    own = ["predicted", "p_active", "p_inactive", "std_active", "std_inactive", "set", "reason"]
    assert list(found[0]) == [*given[0], *own]
    assert [{name: row[name] for name in given[0]} for row in found] == given
    (bad,) = [row for row in found if row["reason"]]
    assert (
        bad["id"] == "n08" and "not a molecule" in bad["reason"] and not any(bad[name] for name in own[:-1])
    )
    assert all(row["predicted"] in row["set"].split("|") for row in found if row is not bad)
    assert "not predicted" in done.stdout and "line 9" in done.stdout
    assert "graphs per second" in done.stdout

    # The same in Python, from a file or a list, in chunks or at once.
    run = load_run(molecules)
    whole = run.predict(ROOT / "examples" / "new_molecules.csv")
    assert list(whole) == list(found[0]) and whole["reason"].tolist() == [row["reason"] for row in found]
    assert whole["predicted"].fillna("").tolist() == [row["predicted"] for row in found]
    chunks = run.read_datasets(ROOT / "examples" / "new_molecules.csv", chunk_size=4)
    pieces = torch.cat([run.predict_dataset(chunk).values for chunk in chunks])
    valid = whole[["p_active", "p_inactive"]].dropna().to_numpy()
    np.testing.assert_allclose(pieces, valid, rtol=1e-4, atol=1e-5)
    first = given[0]["smiles"]
    for several in (first, [first], pd.Series([first]), np.array([first]), pd.DataFrame({"SMILES": [first]})):
        np.testing.assert_allclose(run.predict(several)["p_active"][0], valid[0, 0], rtol=1e-4, atol=1e-5)


def test_predictions_in_several_processes_are_the_same(molecules, tmp_path):
    source = pd.read_csv(ROOT / "examples" / "new_molecules.csv")
    run, graphs = load_run(molecules), str(tmp_path / "many.csv")
    pd.concat([source] * 3).sample(frac=1, random_state=0).to_csv(graphs, index=False)
    written = []
    for workers in (1, 2):
        out, embeddings = tmp_path / f"{workers}.csv", tmp_path / f"e{workers}.csv"
        with one_thread(), use_processes(chunk_processes(workers)):
            chunks = run.open_chunks(graphs, 7)
            summary = predict_file(run, chunks, out, embeddings)
        text = format_predictions(run, replace(summary, seconds=1.0), Path("out.csv"))
        written.append((out.read_bytes(), embeddings.read_bytes(), text))
    assert written[0] == written[1]


def test_known_classes_give_all_metrics(molecules, tmp_path, script):
    lines = (ROOT / "examples" / "molecules.csv").read_text().splitlines()
    (tmp_path / "some.csv").write_text("\n".join(lines[:41]) + "\n")
    arguments = [f"run={molecules}", "input=some.csv", "fold=1", "embeddings=e.csv", "at_once=7"]
    done = script("predict", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    predictions = pd.read_csv(tmp_path / "some_predictions.csv")
    assert not any(name.startswith("std") for name in predictions)  # of one model
    truth = predictions["activity"]
    expected = {
        "accuracy": (truth == predictions["predicted"]).mean(),
        "balanced_accuracy": balanced_accuracy_score(truth, predictions["predicted"]),
        "auroc": roc_auc_score(truth == "inactive", predictions["p_inactive"]),
        "log_loss": log_loss(truth, predictions[["p_active", "p_inactive"]]),
    }
    assert "fold 1" in done.stdout and "with known targets 40: " in done.stdout
    for name, value in expected.items():
        assert f" {name} {value:.3f}" in done.stdout
    vectors = (tmp_path / "e.csv").read_text().splitlines()
    assert len(vectors) == 41 and vectors[0].startswith("id,e0,e1,")


def test_unseen_labels_are_listed_or_refused(molecules, tmp_path, script):
    (tmp_path / "strange.csv").write_text("id,smiles\na,CC[Se]C\nb,CCO\n")
    arguments = (f"run={molecules}", "input=strange.csv")
    done = script("predict", *arguments, cwd=tmp_path)
    assert done.returncode == 0 and "unseen in training" in done.stdout and "atom=Se (1)" in done.stdout
    refused = script("predict", *arguments, "strict=true", "out=other.csv", cwd=tmp_path)
    assert refused.returncode == 1 and "atom=Se" in refused.stderr and refused.stderr.count("\n") == 1
    assert not (tmp_path / "other.csv").exists()


def test_molecules_that_cannot_be_read_have_a_reason(molecules, tmp_path, rows, script):
    lines = [f"x{i},C1CC" for i in range(12)]
    (tmp_path / "some.csv").write_text("\n".join(["id,smiles", "a,CCO", *lines, "b,CCN"]) + "\n")
    arguments = (f"run={molecules}", "input=some.csv", "at_once=4")
    done = script("predict", *arguments, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.count("not predicted: some.csv, line") == 5
    assert "not predicted: 7 more, see the column reason" in done.stdout
    found = rows(tmp_path / "some_predictions.csv")
    assert [row["id"] for row in found] == ["a", *(f"x{i}" for i in range(12)), "b"]
    assert [bool(row["reason"]) for row in found] == [not row["predicted"] for row in found]
    assert sum(bool(row["reason"]) for row in found) == 12
    refused = script("predict", *arguments, "strict=true", "out=strict.csv", cwd=tmp_path)
    assert refused.returncode == 1 and refused.stderr.startswith("error: some.csv, line 3: molecule 'x0'")
    assert refused.stderr.count("\n") == 1 and not (tmp_path / "strict.csv").exists()


def test_unknown_classes_are_counted(molecules, tmp_path, rows, script):
    (tmp_path / "some.csv").write_text("id,smiles,activity\na,CCO,active\nb,CCN,odd\nc,CCC,\n")
    done = script("predict", f"run={molecules}", "input=some.csv", cwd=tmp_path)
    assert "classes unknown to the run, not evaluated: odd (1)" in done.stdout, done.stderr
    assert "with known targets 1: accuracy" in done.stdout
    assert [row["activity"] for row in rows(tmp_path / "some_predictions.csv")] == ["active", "odd", ""]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["input=x.csv"], "needed: run="),
        (["run=nowhere", "input=x.csv"], "nowhere is not a run directory"),
        (["run=RUN", "input=absent.csv"], "absent.csv: no such file or directory, and no SMILES string"),
        (["run=RUN", "input=x.csv", "level=1"], "level must be"),
        (["run=RUN,nowhere", "input=x.csv"], "nowhere is not a run directory"),
        (["run=RUN", "input=x.csv", "fold=7"], "no finished fold 7; valid: 0, 1, 2"),
        (["run=RUN", "input=x.csv", "fold=x"], "fold must be a valid integer"),
        (["run=RUN", "inptu=x.csv"], "did you mean input?"),
        (["run=RUN", "input=x.csv", "strict=maybe"], "strict must be a valid boolean"),
        (["run=RUN", "input=x.csv", "embeddings=e.csv", "device=gpu"], "device must be"),
    ],
)
def test_errors_are_one_line(molecules, tmp_path, script, arguments, message):
    (tmp_path / "x.csv").write_text("id,smiles\na,CCO\n")
    done = script("predict", *(text.replace("RUN", str(molecules)) for text in arguments), cwd=tmp_path)
    assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_pipes_are_refused_and_files_of_killed_predictions_removed(molecules, tmp_path, script):
    (tmp_path / "x.csv").write_text("id,smiles\na,CCO\n")
    os.mkfifo(tmp_path / "pipe")
    for option in ("out", "embeddings"):
        done = script("predict", f"run={molecules}", "input=x.csv", f"{option}=pipe", cwd=tmp_path)
        assert done.returncode == 1 and "cannot write pipe" in done.stderr and done.stderr.count("\n") == 1
    assert (tmp_path / "pipe").is_fifo()
    left = tmp_path / ".x_predictions.csv.abcdefgh.tmp"
    left.touch()
    assert script("predict", f"run={molecules}", "input=x.csv", cwd=tmp_path).returncode == 0
    assert not left.exists()


def test_dgl_graphs_are_predicted_like_the_dataset(trained):
    run, dataset = load_run(trained("model.hidden_dim=8")), bonds(graphs=60)
    graphs = []
    for number in range(10):
        graph, _ = dataset[number]
        graph.ndata["kind"], graph.edata["bond"] = (
            graph.ndata.pop("feat").argmax(1),
            graph.edata.pop("feat").argmax(1) + 1,
        )
        graphs.append(graph)
    alone, among_others = (
        run.predict(graphs),
        run.predict(dataset),
    )  # in batches of 10 and of 60: summed in another order
    names = [name for name in alone if name.startswith("p_")]
    np.testing.assert_allclose(alone[names], among_others[names][:10], rtol=1e-4, atol=1e-5)


def test_an_ensemble_is_the_mean_of_its_folds(trained):
    run, dataset = load_run(trained("model.hidden_dim=8")), bonds(graphs=60)
    each = torch.stack([run.select_fold(number).predict_dataset(dataset).values for number in range(3)])
    together = run.predict_dataset(dataset)
    torch.testing.assert_close(together.values, each.mean(dim=0))
    torch.testing.assert_close(together.std, each.std(dim=0, correction=0))
    assert run.select_fold(0).predict_dataset(dataset).std is None
    twice = load_run([run.run.folder, str(run.run.folder)], level=None)
    assert len(twice.folds) == 6 and twice.quantiles is None
    torch.testing.assert_close(twice.predict_dataset(dataset).values, together.values)
    with pytest.raises(ConfigError, match="no finished fold 5"):
        run.select_fold(5)
    assert isinstance(dataset, GraphDataset) and len(repr(run)) < 200 and len(repr(together)) < 200


def test_the_card_has_results_versions_and_use(molecules):
    card = (molecules / "card.md").read_text()
    for text in (
        "EGIN-E on molecules",
        "parameters",
        "selected",
        "95 %",
        "calibration error",
        "Label sets at the level 90 %",
        "log loss",
        "sha256",
        "torch",
    ):
        assert text in card
    assert f"egin predict run={molecules} input=FILE" in card


def test_the_card_has_the_splits():
    trainer, model = {"epochs": 30, "batch_size": 32}, {"hidden_dim": 64}
    cv = {"k": 5, "validation": True}

    def line(cv, dataset=(), model=model):
        return training_line(
            {"cv": cv, "trainer": trainer, "dataset": dict(dataset), "model": model, "seed": 0}
        )

    assert line(cv) == "5 folds, with a validation set; up to 30 epochs, batch size 32; seed 0"
    assert line(cv | {"split_by": "scaffold"}).startswith("5 folds that keep scaffolds together, with")
    assert line(cv, {"split_column": "split"}).startswith("split by the column 'split', with")
    assert line(cv | {"folds_file": "mine.json"}).startswith("folds of mine.json, with")
    assert "epochs" not in line(cv, model={"penalties": [1]})
    assert line(cv | {"refit": True}) == "one model on all graphs; 30 epochs, batch size 32; seed 0"


def test_the_card_has_the_command_as_typed():
    record = {"command": ["python scripts/train.py", "dataset.path=my file.csv", "cv.k=3"]}
    assert train_command(record) == "python scripts/train.py 'dataset.path=my file.csv' cv.k=3"
    sweep = {"command": ["egin train", "-m", "model=gin,egin"], "overrides": ["model=gin"]}
    assert train_command(sweep) == "egin train model=gin"
    assert train_command({}) is None
    assert sibling_program(train_command(record), "predict") == "python scripts/predict.py"
    assert sibling_program("egin train", "explain") == sibling_program(None, "explain") == "egin explain"


def test_the_card_lists_what_reading_left_out(run_here, tmp_path):
    pytest.importorskip("rdkit")
    text = (ROOT / "examples" / "molecules.csv").read_text() + "bad,C1CC,active\n"
    (tmp_path / "some.csv").write_text(text)
    options = ["dataset=smiles", f"dataset.path={tmp_path / 'some.csv'}", "dataset.target=activity"]
    small = ["dataset.on_invalid=skip", "cv=holdout", "trainer.epochs=1", "model.hidden_dim=4"]
    run_here(tmp_path / "run", *options, *small)
    card = (tmp_path / "run" / "card.md").read_text()
    assert "1 molecule(s) skipped" in card and "'bad'" in card
