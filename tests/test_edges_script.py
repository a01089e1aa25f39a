"""scripts/edges.py: what edges are worth, on data where the answer is known."""

import runpy
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from running import ROOT, empty_figures

from egin_dgl.api import load_run
from egin_dgl.data import load_csv
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir


def call(monkeypatch, *arguments):
    path = str(ROOT / "scripts" / "edges.py")
    monkeypatch.setattr(sys, "argv", [path, *arguments])
    with empty_figures():
        runpy.run_path(path, run_name="__main__")


@pytest.fixture
def study(numbers, monkeypatch):
    """Study in a directory; return its table by the names of the variants."""

    def run(directory, *options):
        given = (
            ()
            if options[0].startswith("resume=")
            else ("trainer.fold_workers=1", f"hydra.sweep.dir={directory}")
        )
        call(monkeypatch, *options, *given)
        return pd.read_csv(directory / "edges.csv", index_col="edges")

    return run


def test_the_truth_on_bonds_is_found_and_resumed(study, tmp_path, capsys):
    options = ["dataset=bonds", "dataset.graphs=100", "cv.k=4", "model=ewl_kernel"]
    table = study(tmp_path, *options)
    assert table.loc["as it is", "mean"] == 100 and table.loc["as it is", ["1-WL", "E-WL"]].tolist() == [
        50,
        100,
    ]
    for variant in ("constant", "no edges"):
        assert 35 < table.loc[variant, "worth"] < 65 and table.loc[variant, "verdict"] == "matters"
        assert table.loc[variant, ["1-WL", "E-WL"]].tolist() == [50, 50]
        assert table.loc[variant, "conflicts"] == 4  # the skeletons, in both classes
    text = capsys.readouterr().out
    worth = table.loc["constant"]
    assert (
        f"edge features are worth {worth['worth']:.1f} ± {(worth['high'] - worth['low']) / 2:.1f} points of test accuracy"
        in text
    )
    assert {f.suffix for f in tmp_path.glob("edges.*")} == {
        ".md",
        ".csv",
        ".png",
        ".svg",
    }
    assert "| constant |" in (tmp_path / "edges.md").read_text(encoding="utf-8")

    jobs = SweepDir(tmp_path).runs()
    before = {run.path: run.summary.stat().st_mtime_ns for run in jobs[:-1]}
    shutil.rmtree(jobs[-1].path)
    assert study(tmp_path, f"resume={tmp_path}").equals(table)
    assert before == {run.path: run.summary.stat().st_mtime_ns for run in SweepDir(tmp_path).runs()[:-1]}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Complete graphs of four nodes in CSV files; the target is the sum of the weights around node 0."""
    directory, random = tmp_path_factory.mktemp("own") / "weights", np.random.default_rng(0)
    directory.mkdir()
    graphs, nodes, edges = ["id,label"], ["graph,node,kind"], ["graph,source,target,weight"]
    for graph in range(18):
        weights = {(a, b): round(random.random(), 3) for a in range(4) for b in range(a)}
        graphs.append(f"g{graph},{sum(w for pair, w in weights.items() if 0 in pair):.3f}")
        nodes += [f"g{graph},{node},{'a' if node == 0 else 'b'}" for node in range(4)]
        edges += [f"g{graph},{a},{b},{weight}" for (a, b), weight in weights.items()]
    for name, lines in {"graphs": graphs, "nodes": nodes, "edges": edges}.items():
        (directory / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return directory


def test_own_complete_graphs_with_a_numeric_target(study, tables, tmp_path, capsys):
    own = ["dataset=csv", f"dataset.path={tables}", "cv.k=3", "trainer.epochs=2"]
    table = study(tmp_path, *own, "model=egin_e", "model.hidden_dim=8", "region=0.25")
    assert set(table["metric"]) == {"rmse"} and table.loc["as it is", "folds"] == 3
    assert table.loc["rewired", "verdict"] == "not applicable" and table.loc["rewired", "folds"] == 0
    trained = table.drop(index=["as it is", "rewired"])
    assert np.allclose(trained["worth"], trained["mean"] - table.loc["as it is", "mean"], atol=0.01)
    assert set(table["region"]) == {0.25}
    text = capsys.readouterr().out
    assert "rewired is not applicable: no two edges of a graph can exchange ends." in text
    assert (
        "of rmse; equivalent: within" in text and "points" not in text.partition("mean ± std over folds")[2]
    )
    runs = SweepDir(tmp_path).runs()
    assert len(runs) == 4

    permuted = next(run for run in runs if run.path.name.endswith("permuted"))
    trained, new = load_csv(str(tables), edge_features="permuted"), load_run(permuted.path)
    chunks = list(new.read_datasets(tables, chunk_size=5))
    assert len(chunks) == 4 and torch.equal(
        torch.cat([chunk.edge_feats for chunk in chunks]), trained.edge_feats
    )
    assert not torch.equal(trained.edge_feats, load_csv(str(tables)).edge_feats)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["region=-1"], "region must be greater than or equal to 0, got -1"),
        (["resume=nowhere"], "nowhere is not the directory of a sweep"),
        (
            ["dataset=bonds", "cv.group_duplicates=true"],
            "cv.group_duplicates=true gives every variant other folds",
        ),
        (["dataset=bonds", "model=morgan_forest"], "model=morgan_forest reads SMILES strings"),
        (["dataset=bnds"], ".*did you mean bonds"),
    ],
)
def test_errors_are_one_sentence(monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    with pytest.raises(SystemExit, match=f"error: {message}"):
        call(monkeypatch, *options)
    assert not RunDir(tmp_path).exists and not list(tmp_path.rglob("sweep.json"))
