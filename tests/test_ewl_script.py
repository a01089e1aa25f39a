"""scripts/ewl.py: audit, compare, draw."""

import json
import runpy
import sys
from types import SimpleNamespace

import pytest
from running import ROOT


@pytest.fixture
def ewl(capsys, monkeypatch):
    """The script in this process."""
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")  # which the command sets

    def call(*arguments, folder=ROOT):
        monkeypatch.chdir(folder)
        path, code = str(ROOT / "scripts" / "ewl.py"), 0
        monkeypatch.setattr(sys, "argv", [path, *arguments])
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            code = 1
            print(end, file=sys.stderr)
        printed = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=printed.out, stderr=printed.err)

    return call


def test_audit_prints_a_table_and_json(ewl):
    text = ewl("audit", "dataset=mutag").stdout
    assert "MUTAG: 188 graphs" in text and "175" in text and "0 exact duplicates" in text
    done = ewl("audit", "dataset=mutag,bonds", "--json", "--depth", "2", "dataset.edge_features=keep")
    mutag, bonds = map(json.loads, done.stdout.splitlines())
    assert (mutag["dataset"], bonds["dataset"]) == ("MUTAG", "bonds")
    bounds_of = {(level["method"], level["depth"]): level["bound"] for level in bonds["levels"]}
    assert bounds_of["1-wl", 2] == 0.5 and bounds_of["e-wl", 1] == 1.0


def test_compare_names_the_depth_and_the_colours(ewl):
    done = ewl("compare", "dataset=bonds", "0", "1")
    assert "1-WL does not distinguish them" in done.stdout and "an exact search does" in done.stdout
    assert "E-WL distinguishes them at depth 1, colour" in done.stdout


def test_draw_writes_a_picture(ewl, tmp_path):
    done = ewl("draw", "dataset=mutag", "3", folder=tmp_path)
    assert done.stdout.startswith("MUTAG_3_e-wl.png: 3, 7, 13, 17 colours")
    assert (tmp_path / "MUTAG_3_e-wl.png").read_bytes().startswith(b"\x89PNG")


def test_errors_are_one_line(ewl):
    for arguments, message in {
        ("compare", "dataset=mutag", "3"): "compare takes 2 numbers of graphs, got 1",
        ("audit", "dataset=mutg"): "did you mean mutag?",
    }.items():
        done = ewl(*arguments)
        assert done.returncode == 1 and message in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("number", ["²", "①", "x"])
def test_what_is_not_the_number_of_a_graph_is_one_sentence(ewl, number):
    done = ewl("draw", "dataset=bonds", number)
    assert (
        done.returncode == 1
        and done.stderr.startswith("error: ")
        and "nor the number of a graph" in done.stderr
    )


def test_audit_ends_where_colours_are_stable(ewl):
    done = ewl("audit", "dataset=mutag", "--depth", "100000000")
    assert done.returncode == 0 and 5 < len(done.stdout.splitlines()) < 30
