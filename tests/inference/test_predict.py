"""Predictions for files and graphs, by scripts/predict.py and in Python."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score

from egin_dgl.data import GraphDataset, bonds
from egin_dgl.errors import ConfigError
from egin_dgl.inference.trained_run import load_run
from egin_dgl.reporting.one_run.card import sibling_program, train_command, training_line

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
    assert list(found[0]) == ["id", "predicted", "p_active", "p_inactive", "std_active", "std_inactive"]
    assert len(found) == 19 and "n08" not in {row["id"] for row in found}
    assert "skipped" in done.stdout and "line 9" in done.stdout
    assert "graphs per second" in done.stdout

    # The same in Python, from a file or a list, in chunks or at once.
    run = load_run(molecules)
    whole = run.predict(ROOT / "examples" / "new_molecules.csv")
    assert whole.predicted == [row["predicted"] for row in found]
    chunks = run.read_datasets(ROOT / "examples" / "new_molecules.csv", chunk_size=4)
    pieces = [run.predict_dataset(chunk) for chunk in chunks]
    torch.testing.assert_close(torch.cat([piece.probabilities for piece in pieces]), whole.probabilities)
    first = rows(ROOT / "examples" / "new_molecules.csv")[0]["smiles"]
    for several in ([first], pd.Series([first]), np.array([first])):
        torch.testing.assert_close(run.predict(several).probabilities[0], whole.probabilities[0])


def test_known_classes_give_an_accuracy(molecules, tmp_path, script):
    lines = (ROOT / "examples" / "molecules.csv").read_text().splitlines()
    (tmp_path / "some.csv").write_text("\n".join(lines[:41]) + "\n")
    arguments = [f"run={molecules}", "input=some.csv", "fold=1", "embeddings=e.csv", "at_once=7"]
    done = script("predict", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    predictions = pd.read_csv(tmp_path / "some_predictions.csv")
    correct = (predictions["label"] == predictions["predicted"]).sum()
    balanced = balanced_accuracy_score(predictions["label"], predictions["predicted"])
    assert f"accuracy {100 * correct / 40:.1f} % ({correct}/40)" in done.stdout and "fold 1" in done.stdout
    assert f"balanced accuracy {100 * balanced:.1f} %" in done.stdout
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


def test_skipped_molecules_are_listed_in_a_file(molecules, tmp_path, script):
    lines = [f"x{i},C1CC" for i in range(12)]
    (tmp_path / "some.csv").write_text("\n".join(["id,smiles", "a,CCO", *lines, "b,CCN"]) + "\n")
    arguments = (f"run={molecules}", "input=some.csv", "at_once=4")
    done = script("predict", *arguments, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.count("skipped: some.csv, line") == 5, done.stderr
    assert "skipped: 7 more, listed in some_predictions_skipped.txt" in done.stdout
    listed = (tmp_path / "some_predictions_skipped.txt").read_text().splitlines()
    assert [line.split(":")[0] for line in listed] == [f"some.csv, line {i}" for i in range(3, 15)]
    refused = script("predict", *arguments, "strict=true", "out=strict.csv", cwd=tmp_path)
    assert refused.returncode == 1 and refused.stderr.startswith("error: some.csv, line 3: molecule 'x0'")
    assert refused.stderr.count("\n") == 1 and not (tmp_path / "strict.csv").exists()
    (tmp_path / "some.csv").write_text("id,smiles\na,CCO\n")
    assert script("predict", *arguments, cwd=tmp_path).returncode == 0
    assert not (tmp_path / "some_predictions_skipped.txt").exists()


def test_unknown_classes_are_counted(molecules, tmp_path, rows, script):
    (tmp_path / "some.csv").write_text("id,smiles,activity\na,CCO,active\nb,CCN,odd\nc,CCC,\n")
    done = script("predict", f"run={molecules}", "input=some.csv", cwd=tmp_path)
    assert "classes unknown to the run, not evaluated: odd (1)" in done.stdout, done.stderr
    assert "/1), balanced" in done.stdout
    assert [row["label"] for row in rows(tmp_path / "some_predictions.csv")] == ["active", "odd", ""]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["input=x.csv"], "needed: run="),
        (["run=nowhere", "input=x.csv"], "nowhere is not a run directory"),
        (["run=RUN", "input=absent.csv"], "absent.csv"),
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
    torch.testing.assert_close(alone.probabilities, among_others.probabilities[:10], rtol=1e-4, atol=1e-5)


def test_an_ensemble_is_the_mean_of_its_folds(trained):
    run, dataset = load_run(trained("model.hidden_dim=8")), bonds(graphs=60)
    each = torch.stack([run.select_fold(number).predict(dataset).probabilities for number in range(3)])
    together = run.predict(dataset)
    torch.testing.assert_close(together.probabilities, each.mean(dim=0))
    torch.testing.assert_close(together.std, each.std(dim=0, correction=0))
    assert not run.select_fold(0).predict(dataset).std.any()
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
