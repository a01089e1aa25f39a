"""From a file to answers in a file, as a person calls it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score

from egin_dgl.data import GraphDataset, bonds
from egin_dgl.errors import ConfigError
from egin_dgl.inference.trained_run import load_run
from egin_dgl.reporting.one_run.card import training_line

ROOT = Path(__file__).resolve().parent.parent.parent
MOLECULES = [
    "dataset=smiles",
    f"dataset.path={ROOT / 'examples' / 'molecules.csv'}",
    "dataset.target=activity",
]


def call(script, *words, cwd=None):
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / f"{script}.py", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ),
    )


@pytest.fixture(scope="module")
def molecules(run_here, tmp_path_factory):
    """A run on the molecules of the example."""
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("molecules")
    small = ["cv.k=3", "trainer.epochs=15", "model.hidden_dim=16", "model.num_layers=2"]
    run_here(folder, *MOLECULES, *small)
    return folder


def test_every_run_tells_what_its_folds_answered(trained, rows):
    folder = trained("model.hidden_dim=8")
    dataset = bonds(graphs=60)
    found = rows(folder / "predictions.csv")
    assert sorted(int(row["id"]) for row in found) == list(range(60))
    summary = json.loads((folder / "summary.json").read_text())
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


def test_without_validation_the_last_epoch_answers_and_says_so(trained, rows):
    found = rows(
        trained("cv=paper", "cv.k=3", "trainer.epochs=2", "trainer.batch_size=16") / "predictions.csv"
    )
    assert {(row["epoch"], row["chosen_on"], row["calibrated"]) for row in found} == {("2", "last", "false")}


def test_a_file_of_molecules_is_answered_in_a_file(molecules, tmp_path, rows):
    done = call(
        "predict", f"run={molecules}", f"input={ROOT / 'examples' / 'new_molecules.csv'}", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "new_molecules_predictions.csv")
    assert list(found[0]) == ["id", "predicted", "p_active", "p_inactive", "std_active", "std_inactive"]
    assert len(found) == 19 and "n08" not in {row["id"] for row in found}
    assert "skipped" in done.stdout and "line 9" in done.stdout
    assert "graphs a second from file to file; computing alone" in done.stdout
    assert "graphs that training went through in a second" in done.stdout

    # The same in Python, from a file and from a list; a piece at a time or all at once.
    run = load_run(molecules)
    whole = run.predict(ROOT / "examples" / "new_molecules.csv")
    assert whole.predicted == [row["predicted"] for row in found]
    pieces = [run.answer(part) for part in run.datasets(ROOT / "examples" / "new_molecules.csv", at_once=4)]
    torch.testing.assert_close(torch.cat([part.probabilities for part in pieces]), whole.probabilities)
    first = rows(ROOT / "examples" / "new_molecules.csv")[0]["smiles"]
    for several in ([first], pd.Series([first]), np.array([first])):
        torch.testing.assert_close(run.predict(several).probabilities[0], whole.probabilities[0])


def test_known_classes_are_compared(molecules, tmp_path):
    lines = (ROOT / "examples" / "molecules.csv").read_text().splitlines()
    (tmp_path / "some.csv").write_text("\n".join(lines[:41]) + "\n")
    words = [f"run={molecules}", "input=some.csv", "fold=1", "embeddings=e.csv", "at_once=7"]
    done = call("predict", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answers = pd.read_csv(tmp_path / "some_predictions.csv")
    right = (answers["label"] == answers["predicted"]).sum()
    balanced = balanced_accuracy_score(answers["label"], answers["predicted"])
    assert f"{right} of 40 with a known class" in done.stdout and "fold 1" in done.stdout
    assert f"balanced accuracy {100 * balanced:.1f} %" in done.stdout
    vectors = (tmp_path / "e.csv").read_text().splitlines()
    assert len(vectors) == 41 and vectors[0].startswith("id,e0,e1,")


def test_labels_never_seen_are_named_or_refused(molecules, tmp_path):
    (tmp_path / "strange.csv").write_text("id,smiles\na,CC[Se]C\nb,CCO\n")
    words = (f"run={molecules}", "input=strange.csv")
    done = call("predict", *words, cwd=tmp_path)
    assert done.returncode == 0 and "never seen in training" in done.stdout and "atom=Se (1)" in done.stdout
    refused = call("predict", *words, "strict=true", "out=other.csv", cwd=tmp_path)
    assert refused.returncode == 1 and "atom=Se" in refused.stderr and refused.stderr.count("\n") == 1
    assert not (tmp_path / "other.csv").exists()


def test_all_that_is_left_out_is_named_in_a_file(molecules, tmp_path):
    lines = [f"x{i},C1CC" for i in range(12)]
    (tmp_path / "some.csv").write_text("\n".join(["id,smiles", "a,CCO", *lines, "b,CCN"]) + "\n")
    words = (f"run={molecules}", "input=some.csv", "at_once=4")
    done = call("predict", *words, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.count("skipped: some.csv, line") == 5, done.stderr
    assert "skipped: 7 more; all of them in some_predictions_skipped.txt" in done.stdout
    told = (tmp_path / "some_predictions_skipped.txt").read_text().splitlines()
    assert [line.split(":")[0] for line in told] == [f"some.csv, line {i}" for i in range(3, 15)]
    refused = call("predict", *words, "strict=true", "out=strict.csv", cwd=tmp_path)
    assert refused.returncode == 1 and refused.stderr.startswith("error: some.csv, line 3: molecule 'x0'")
    assert refused.stderr.count("\n") == 1 and not (tmp_path / "strict.csv").exists()
    (tmp_path / "some.csv").write_text("id,smiles\na,CCO\n")
    assert call("predict", *words, cwd=tmp_path).returncode == 0
    assert not (tmp_path / "some_predictions_skipped.txt").exists()


def test_a_class_that_the_run_does_not_know_is_kept_and_counted(molecules, tmp_path, rows):
    (tmp_path / "some.csv").write_text("id,smiles,activity\na,CCO,active\nb,CCN,odd\nc,CCC,\n")
    done = call("predict", f"run={molecules}", "input=some.csv", cwd=tmp_path)
    assert "classes that the run does not know, not compared: odd (1)" in done.stdout, done.stderr
    assert "of 1 with a known class" in done.stdout
    assert [row["label"] for row in rows(tmp_path / "some_predictions.csv")] == ["active", "odd", ""]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["input=x.csv"], "needed: run="),
        (["run=nowhere", "input=x.csv"], "nowhere is not the directory of a run"),
        (["run=RUN", "input=absent.csv"], "absent.csv"),
        (["run=RUN", "input=x.csv", "fold=7"], "no finished fold 7; there are 0, 1, 2"),
        (["run=RUN", "input=x.csv", "fold=x"], "fold must be a whole number"),
        (["run=RUN", "inptu=x.csv"], "did you mean input?"),
        (["run=RUN", "input=x.csv", "strict=maybe"], "strict must be true or false"),
        (["run=RUN", "input=x.csv", "embeddings=e.csv", "device=gpu"], "device must be"),
    ],
)
def test_mistakes_are_one_sentence(molecules, tmp_path, words, told):
    (tmp_path / "x.csv").write_text("id,smiles\na,CCO\n")
    done = call("predict", *(word.replace("RUN", str(molecules)) for word in words), cwd=tmp_path)
    assert done.returncode == 1 and told in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_graphs_of_other_libraries_are_answered_alike(trained):
    """A run on files answers for DGL graphs that carry the same labels."""
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


def test_one_fold_and_all(trained):
    run, dataset = load_run(trained("model.hidden_dim=8")), bonds(graphs=60)
    each = torch.stack([run.only(number).predict(dataset).probabilities for number in range(3)])
    together = run.predict(dataset)
    torch.testing.assert_close(together.probabilities, each.mean(dim=0))
    torch.testing.assert_close(together.spread, each.std(dim=0, correction=0))
    assert not run.only(0).predict(dataset).spread.any()
    with pytest.raises(ConfigError, match="no finished fold 5"):
        run.only(5)
    assert isinstance(dataset, GraphDataset) and len(repr(run)) < 200 and len(repr(together)) < 200


def test_the_card_says_what_a_stranger_asks(molecules):
    card = (molecules / "card.md").read_text()
    for told in (
        "EGIN-E on molecules",
        "parameters",
        "selected",
        "95 %",
        "calibration error",
        "log loss",
        "sha256",
        "torch",
    ):
        assert told in card
    assert f"egin predict run={molecules} input=FILE" in card


def test_the_card_says_how_graphs_were_cut():
    trainer, model = {"epochs": 30, "batch_size": 32}, {"hidden_dim": 64}
    cv = {"k": 5, "validation": True}

    def told(cv, dataset=(), model=model):
        return training_line(
            {"cv": cv, "trainer": trainer, "dataset": dict(dataset), "model": model, "seed": 0}
        )

    assert told(cv).startswith("5 parts, one part validates and one tests; up to 30 epochs")
    assert told(cv | {"split_by": "scaffold"}).startswith("5 parts that keep a scaffold together, one")
    assert told(cv, {"part": "split"}).startswith("parts by the column 'split', one")
    assert told(cv | {"folds_file": "mine.json"}).startswith("parts of mine.json, one")
    assert "epochs" not in told(cv, model={"penalties": [1]})
    assert told(cv | {"refit": True}) == "one model on all graphs; 30 epochs in batches of 32, seed 0"
