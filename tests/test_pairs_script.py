"""scripts/pairs.py: a table of the pairs that models distinguish."""

import csv
import runpy
import sys

import pytest
from running import ROOT


def call(monkeypatch, *arguments):
    path = str(ROOT / "scripts" / "pairs.py")
    monkeypatch.setattr(sys, "argv", [path, *arguments])
    runpy.run_path(path, run_name="__main__")


def test_table_markdown_and_csv(monkeypatch, capsys, tmp_path):
    call(monkeypatch, "model=gin,egin_m", "pairs=1", "inits=1", "steps=0", f"out={tmp_path}")
    assert "Pairs distinguished, of 1 in each category" in capsys.readouterr().out
    lines = (tmp_path / "pairs.md").read_text(encoding="utf-8").splitlines()
    table = {
        line.split(" | ")[0]: line.rstrip(" |").split(" | ")[1:] for line in lines if line.startswith("| ")
    }
    assert table["| EGIN-M"] == table["| E-WL"] == ["1", "1", "1", "1", "0"]
    assert table["| GIN"] == table["| 1-WL"] == ["1", "0", "0", "0", "0"]
    with (tmp_path / "pairs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == (4 + 2) * 5 and {row["trained"] for row in rows} == {""}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("model=gon", r"model: there is no 'gon'; valid: .*did you mean gin\?"),
        ("model=ewl_kernel", "model: ewl_kernel is not a network"),
        ("pairs=0", "pairs must be greater than or equal to 1, got 0"),
    ],
)
def test_errors_are_one_sentence(monkeypatch, option, message):
    with pytest.raises(SystemExit, match=f"error: {message}"):
        call(monkeypatch, option)
