"""The table of the zoo: one row a model."""

import subprocess
import sys
from pathlib import Path

import pytest

from egin_dgl.data import bonds
from egin_dgl.models import EGIN, GIN, MLPBag
from egin_dgl.reporting.documents.zoo import measure_zoo, zoo_table

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "zoo.py"


def script(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=300)


def test_a_row_tells_size_time_and_what_the_model_says_of_itself(numbers):
    data = bonds(graphs=8)
    rows = measure_zoo({"gin": GIN, "egin": EGIN, "mlp_bag": MLPBag}, data, epochs=1)
    by_name = {row.option: row for row in rows}
    assert by_name["gin"].relative_time == 1
    assert [by_name[name].sees_edges for name in ("gin", "egin", "mlp_bag")] == ["no", "yes", "their sum"]
    assert by_name["egin"].parameters == sum(p.numel() for p in EGIN(data.info).parameters())
    table = zoo_table(rows, "bonds").splitlines()
    assert len(table) == 2 + 3 and {line.count("|") for line in table} == {8}
    assert EGIN.paper in table[2] and EGIN.when in table[2]  # those that see edges come first


def test_the_reference_must_be_there():
    with pytest.raises(ValueError, match="the reference must be one of egin, got 'gin'"):
        measure_zoo({"egin": EGIN}, bonds(graphs=2))


def test_the_command_prints_the_table():
    done = script("--epochs", "1", "--models", "gin", "majority")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2 + 2 and "`gin`" in done.stdout and "`majority`" in done.stdout


def test_a_mistake_is_one_line():
    done = script("--models", "ginn")
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr
