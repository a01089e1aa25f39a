"""scripts/zoo.py: a table with one row per model."""

import sys

import pytest
import zoo
from docgen.zoo import measure_zoo, zoo_table

from egin_dgl.data import bonds
from egin_dgl.models import EGIN, GIN, MLPBag


def test_a_row_has_edge_usage_size_and_time(numbers):
    data = bonds(graphs=8)
    rows = measure_zoo({"gin": GIN, "egin": EGIN, "mlp_bag": MLPBag}, data, epochs=1)
    by_name = {row.option: row for row in rows}
    assert by_name["gin"].relative_time == 1
    assert [by_name[name].edge_usage for name in ("gin", "egin", "mlp_bag")] == ["no", "yes", "their sum"]
    assert by_name["egin"].parameters == sum(p.numel() for p in EGIN(data.info).parameters())
    table = zoo_table(rows, "bonds").splitlines()
    assert len(table) == 2 + 3 and {line.count("|") for line in table} == {8}
    assert EGIN.paper in table[2] and EGIN.when in table[2]  # models that use edge features come first


def test_the_reference_must_be_among_the_models():
    with pytest.raises(ValueError, match="the reference must be one of egin, got 'gin'"):
        measure_zoo({"egin": EGIN}, bonds(graphs=2))


def test_the_script_prints_the_table(numbers, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["zoo.py", "--epochs", "1", "--models", "gin", "majority"])
    zoo.main()
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 2 + 2 and "`gin`" in printed and "`majority`" in printed


def test_the_script_reports_an_unknown_model(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["zoo.py", "--models", "ginn"])
    with pytest.raises(SystemExit, match="error: no model ginn; valid: "):
        zoo.main()


def test_default_models_are_all_networks():
    names = zoo.model_makers(None)
    assert {"egin", "egin_c", "egin_e", "gin"} <= set(names) and "wl_kernel" not in names
