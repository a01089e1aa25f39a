"""Graphs of users in the app; the pages on them are followed as written."""

import json
import shutil
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import running
from omegaconf.errors import OmegaConfBaseException
from running import ROOT
from walking import QUICK, blocks, follow

from egin_dgl.cli.splitting import merge_groups, warn_missing_classes
from egin_dgl.data import GraphDataset
from egin_dgl.data.fingerprints import scaffold_groups
from egin_dgl.data.readers.smiles import load_smiles
from egin_dgl.data.splits import Folds
from egin_dgl.errors import EginError, one_line
from egin_dgl.reporting.one_run.terminal import over_folds
from egin_dgl.runs.reader import read_run

pytest.importorskip("rdkit", reason="molecules are read with RDKit, the extra `chem`")

EXAMPLES = ROOT / "examples"
MOLECULES = ["dataset=smiles", f"dataset.path={EXAMPLES}/molecules.csv", "dataset.target=activity"]
TABLES = ["dataset=csv", f"dataset.path={EXAMPLES}/tables"]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EGIN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def test_own_graphs_page_runs(run_here, tmp_path, monkeypatch, capsys):
    """Every program and command, training for one epoch of one fold."""
    pytest.importorskip("dgl", reason="DGL is not installed")
    monkeypatch.chdir(tmp_path)
    commands, _ = follow("docs/own-graphs.md", tmp_path, run_here)
    assert commands >= 11
    printed = capsys.readouterr().out
    assert (
        "('atom=C', 'atom=O') ('bond=double', 'bond=single')" in printed and "{'node atom=S': 1}" in printed
    )
    excerpt = next(text for _, text in blocks("docs/own-graphs.md") if text.startswith("id,smiles"))
    assert (EXAMPLES / "molecules.csv").read_text().startswith(excerpt)
    assert (tmp_path / "predictions.csv").read_text().startswith("id,label,split,predicted,p_active,")
    assert (tmp_path / "explained_m001" / "explanation.png").is_file()


def test_molecules_page_runs(run_here, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    commands, printed = follow("docs/molecules.md", tmp_path, run_here, (*QUICK, "cv.k=3"))
    assert commands == 6 and "not predicted" in printed and "log-odds" in printed
    assert (tmp_path / "new_molecules_predictions.csv").is_file()
    assert (tmp_path / "explained_n01" / "explanation.png").is_file()
    assert "EGIN-E on molecules" in (tmp_path / "outputs" / "molecules" / "card.md").read_text()
    assert "active|inactive" in capsys.readouterr().out  # of the program at the end


def test_a_split_column_gives_one_split(run_here, tmp_path):
    summary = run_here(tmp_path, *TABLES, "dataset.split_column=split", *QUICK)
    folds = json.loads((tmp_path / "folds.json").read_text())
    assert summary["folds"] == 1 and folds["fixed"] and [len(part) for part in folds["folds"]] == [24, 24, 72]
    assert folds["folds"][0][:3] == [4, 9, 14] and over_folds(summary) == "on one split"
    assert (
        run_here(tmp_path, *TABLES, "dataset.split_column=split", *QUICK)["protocols"] == summary["protocols"]
    )
    run = read_run(tmp_path)
    assert run.complete and run.expected == [0] and run.whole == 1


def test_scaffolds_stay_in_one_fold(run_here, tmp_path, caplog):
    run_here(tmp_path, *MOLECULES, "cv.split_by=scaffold", "cv.k=5", "cv.fold=0", *QUICK)
    data = load_smiles(EXAMPLES / "molecules.csv", target="activity")
    groups, _ = scaffold_groups(data.smiles)
    parts = json.loads((tmp_path / "folds.json").read_text())["folds"]
    homes = [set(groups[part].tolist()) for part in parts]
    assert sum(map(len, homes)) == len(set(groups.tolist())) == 14
    caplog.clear()
    run_here(tmp_path / "more", *MOLECULES, "cv.split_by=scaffold", "cv.k=14", "cv.fold=0", *QUICK)
    assert "more than one of 14 folds would hold: folds differ in size" in caplog.text


def test_scaffold_split_of_deepchem(run_here, tmp_path):
    """Scaffolds by decreasing size, whatever the seed; acyclic molecules share one."""
    summaries = [
        run_here(tmp_path / str(seed), *MOLECULES, "cv=scaffold", f"seed={seed}", *QUICK) for seed in (0, 1)
    ]
    records = [json.loads((tmp_path / name / "folds.json").read_text()) for name in "01"]
    assert records[0]["folds"] == records[1]["folds"] and records[0]["fixed"]
    assert summaries[0]["holdout"] and over_folds(summaries[0]) == "on one split"
    data = load_smiles(EXAMPLES / "molecules.csv", target="activity")
    groups, _ = scaffold_groups(data.smiles, acyclic=True)
    test, validation, train = (set(groups[part].tolist()) for part in records[0]["folds"])
    assert not (test & train or test & validation or validation & train)
    sizes = np.bincount(groups)
    assert max(sizes[list(test)]) <= min(sizes[list(train)]) + len(data) // 10
    assert "one split: scaffolds by decreasing size" in (tmp_path / "0" / "card.md").read_text()


def test_a_class_missing_in_folds_is_reported(run_here, tmp_path, caplog):
    lines = (EXAMPLES / "molecules.csv").read_text().splitlines()
    rare = [line.rpartition(",")[0] + ",rare" for line in lines[1:4]]
    (tmp_path / "rare.csv").write_text("\n".join([lines[0], *rare, *lines[4:]]) + "\n")
    options = ["dataset=smiles", f"dataset.path={tmp_path}/rare.csv", "dataset.target=activity"]
    run_here(tmp_path / "run", *options, "cv.split_by=scaffold", "cv.k=5", "cv.fold=0", *QUICK)
    assert "class rare has 3 graph(s) for 5 folds: only fold(s)" in caplog.text
    caplog.clear()
    run_here(tmp_path / "stratified", *options, "cv.k=5", "cv.fold=0", *QUICK)
    assert "only part(s)" not in caplog.text


def test_targets_missing_in_folds_are_reported(caplog):
    nan = float("nan")
    labels = np.array([[0, 1, 0.5], [1, nan, nan], [0, 1, 1.5], [1, 0, 2.5]])
    data = GraphDataset.from_graphs([nx.path_graph(2)] * 4, labels, task="regression")
    folds = Folds("", 0, "", 2, (np.array([0, 2]), np.array([1, 3])))
    warn_missing_classes(folds, data)
    shown = [record.getMessage() for record in caplog.records]
    assert shown == [
        "no graph with label0 = 0 in fold 1",
        "no graph with label0 = 1 in fold 0",
        "no graph with label1 = 0 in fold 0",
        "no graph with label1 = 1 in fold 1",
    ]
    caplog.clear()
    warn_missing_classes(replace(folds, indices=(np.array([1]), np.array([0, 2, 3])), fixed=True), data)
    assert "no graph with a value of label2 in the test set" in caplog.text


def test_groups_of_two_kinds_are_merged():
    one, other = np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 3])
    assert merge_groups([one]).tolist() == one.tolist()
    joined = merge_groups([one, other])
    assert joined[0] == joined[1] == joined[2] and len(set(joined.tolist())) == 3


REFUSED = {
    "scaffolds of no molecules": (
        ["dataset=bonds", "cv.split_by=scaffold"],
        "is for molecules: use dataset=smiles",
    ),
    "another split": (
        [*TABLES, "cv.split_by=size"],
        "cv.split_by must be 'scaffold' or 'scaffold_size', got 'size'",
    ),
    "repetitions of one split": ([*MOLECULES, "cv=scaffold", "cv.repeats=2"], "leave out cv.repeats"),
    "a scaffold split of tables": ([*TABLES, "cv=scaffold"], "cv.split_by=scaffold_size is for molecules"),
    "two cuts": ([*TABLES, "dataset.split_column=split", "cv.repeats=2"], "leave out cv.repeats"),
    "a fold of one split": ([*TABLES, "dataset.split_column=split", "cv.fold=1"], "cv.fold must be 0"),
    "a number as file": (
        [*TABLES, "cv.folds_file=5"],
        "cv.folds_file must be the path of a file, got 5",
    ),
    "several targets": (
        [*TABLES, "dataset.target=[label,part]"],
        "graphs.csv has no column 'part', only 'id', 'label', 'split'; set dataset.target=NAME",
    ),
    "no path": (["dataset=csv"], "dataset.path"),
    "no file": (["dataset=smiles", "dataset.path=none.csv"], "cannot read none.csv: No such file"),
    "no class": (["dataset=smiles", f"dataset.path={EXAMPLES}/new_molecules.csv"], "has no column 'label'"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_options_are_one_sentence(tmp_path, unwatched, options, message):
    with (
        unwatched(),
        pytest.raises((EginError, OmegaConfBaseException)) as caught,
    ):  # before anything is trained
        running.run_here(tmp_path, *options)
    assert message in one_line(caught.value) and not list(tmp_path.glob("fold_*"))


def test_examples_are_the_output_of_their_program(tmp_path):
    shutil.copy(EXAMPLES / "make_molecules.py", tmp_path)
    names = {"__name__": "examples", "__file__": str(tmp_path / "make_molecules.py")}
    exec((tmp_path / "make_molecules.py").read_text(), names)
    names["main"]()
    for path in (
        "molecules.csv",
        "new_molecules.csv",
        "solubility.csv",
        "assays.csv",
        "tables/graphs.csv",
        "tables/nodes.csv",
        "tables/edges.csv",
    ):
        assert (tmp_path / path).read_text() == (EXAMPLES / path).read_text(), path


def test_readme_example_of_the_estimator_runs(numbers, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    program = next(text for language, text in blocks("README.md") if "EGINClassifier" in text)
    exec(program, {})
    score, *_ = capsys.readouterr().out.split()
    assert float(score) > 0.7  # a rule that 94 of 100 molecules follow
