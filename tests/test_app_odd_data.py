"""Odd datasets from training to prediction: no edges at all, names that look like markup, duplicates across folds."""

import json
import re
import sys

import pytest
import running

from egin_dgl.cli.commands import explain, predict
from egin_dgl.cli.splitting import warn_divided_duplicates
from egin_dgl.data import bonds
from egin_dgl.data.splits import make_folds
from egin_dgl.ewl import audit, duplicate_groups
from egin_dgl.inference.trained_run import load_run
from egin_dgl.reporting.one_run.card import MAX_LISTED, skipped_text

SHORT = ["cv.k=3", "trainer.epochs=2", "model.num_layers=2", "model.hidden_dim=4"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("model", ["egin_e", "gin"])
def test_graphs_without_any_edge(run_here, tmp_path, model):
    (tmp_path / "own").mkdir()
    tables = {"graphs": "id,label\n", "nodes": "graph,node,atom\n", "edges": "graph,source,target\n"}
    for i in range(12):
        tables["graphs"] += f"{i},{'ab'[i % 2]}\n"
        tables["nodes"] += f"{i},0,{'CN'[i % 2]}\n{i},1,O\n"
    for name, text in tables.items():
        (tmp_path / "own" / f"{name}.csv").write_text(text)
    options = ["dataset=csv", f"dataset.path={tmp_path / 'own'}", f"model={model}", *SHORT]
    first = run_here(tmp_path / "run", *options)
    (tmp_path / "run" / "summary.json").unlink()
    again = running.resume_here(tmp_path / "run")  # with the dataset of the cache
    assert again["protocols"] == first["protocols"]
    predicted = load_run(tmp_path / "run").predict(tmp_path / "own").filter(like="p_")
    assert predicted.shape == (12, 2) and predicted.notna().all(axis=None)


def test_names_that_look_like_markup_are_printed_as_they_are(run_here, tmp_path, monkeypatch, capsys):
    pytest.importorskip("rdkit")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "[red]"
    place.mkdir()
    smiles = ["CC[/C]=C", "CC=C", "CCC", "CCO"] * 3
    rows = [f"[bold]{i},{smiles[i]},{('[/x]', '[bold]')[i % 2]}" for i in range(12)]
    (place / "own.csv").write_text("\n".join(["id,smiles,label", *rows, ":x:,CCO,[/x]", ""]))
    table = f"{place / 'own.csv'}"
    options = ["dataset=smiles", f"dataset.path='{table}'", "dataset.name='[bold]set:x:'"]
    run_here(place / "run", *options, "dataset.on_invalid=skip", *SHORT)
    printed = capsys.readouterr()
    assert "[bold]set:x:: 10 graphs" in printed.err
    assert "smallest: [/x] with 4" in printed.err
    assert "on [bold]set:x:: test accuracy" in printed.out and "[red]/run" in printed.out
    summary = json.loads((place / "run" / "summary.json").read_text())
    assert len(summary["skipped"]) == 3 and summary["notes"][0].startswith("3 molecule(s) skipped: ")
    assert (place / "run" / "card.md").read_text().count("'CC[/C]=C'") == 6  # in the note, and listed

    monkeypatch.setattr("sys.argv", ["egin predict", f"run={place / 'run'}", f"input={table}"])
    predict.main()
    text = capsys.readouterr().out
    assert "graphs, [/x] " in text and ", [bold] " in text and "molecule '[bold]0': 'CC[/C]=C'" in text
    monkeypatch.setattr("sys.argv", ["egin explain", *sys.argv[1:], "graph=:x:", "out=[red]/out"])
    explain.main()
    text = capsys.readouterr().out
    assert re.search(r":x:: \[(/x|bold)\], p = ", text) and "explanation.png in [red]/out" in text


def test_duplicates_across_folds_are_counted(caplog):
    data = bonds(graphs=40)
    labels, groups = data.labels.numpy(), duplicate_groups(data)
    warn_divided_duplicates(make_folds(labels, 4, groups=groups), data)
    assert not caplog.text
    folds = make_folds(labels, 4)
    warn_divided_duplicates(folds, data)
    leaking = audit(data, folds=folds).leaking_graphs
    assert leaking and len(caplog.records) == 1
    assert f"{leaking} of 40 graphs have a duplicate" in caplog.text
    assert "cv.group_duplicates=true" in caplog.text


def test_a_card_lists_some_dozens_of_skipped_molecules():
    assert skipped_text([]) == "" and skipped_text(["a"]).count("\n- ") == 1
    text = skipped_text([str(i) for i in range(1145)])
    assert text.count("\n- ") == MAX_LISTED + 1 and text.endswith(f"- and {1145 - MAX_LISTED:,} more\n")
