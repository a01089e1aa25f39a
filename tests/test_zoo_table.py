"""The table of the zoo: one row a model, written between its markers and nowhere else."""

import subprocess
import sys
from pathlib import Path

import pytest

from egin_dgl.data import bonds
from egin_dgl.models import EGIN, GIN, MLPBag
from egin_dgl.reporting.zoo import BEGIN, END, measure_zoo, put_between_markers, zoo_table

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


def test_only_what_is_between_the_markers_changes():
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    once = put_between_markers(text, "| new |\n")
    assert once == f"before\n{BEGIN}\n| new |\n{END}\nafter\n"
    assert put_between_markers(once, "| new |\n") == once
    for broken in ("no markers", f"{END}\n{BEGIN}", f"{BEGIN}\n{BEGIN}\n{END}"):
        with pytest.raises(ValueError, match="needs one line"):
            put_between_markers(broken, "")


def test_the_command_writes_the_table_into_a_file(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Zoo\n{BEGIN}\n{END}\nend\n", encoding="utf-8")
    done = script("--write", page, "--epochs", "1", "--models", "gin", "majority")
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert "`gin`" in text and "`majority`" in text and text.endswith(f"{END}\nend\n")


def test_a_mistake_is_one_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("no markers", encoding="utf-8")
    for wrong in (["--write", page, "--epochs", "1", "--models", "gin"], ["--models", "ginn"]):
        done = script(*wrong)
        assert done.returncode == 1 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    assert page.read_text(encoding="utf-8") == "no markers"
