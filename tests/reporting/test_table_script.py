"""scripts/table.py and the end of a sweep, with a job that failed early."""

import csv
import io
import re
import runpy
import shutil
import sys
from dataclasses import dataclass

import pytest
from rich.console import Console
from run_directories import record_overrides
from running import ROOT

from egin_dgl.reporting.many_runs.report import publish_sweep

SCRIPT = ROOT / "scripts" / "table.py"


JOBS = {
    "0_gin_bonds": ("model=gin", "model.hidden_dim=8"),
    "1_gin_bonds": ("model=gin", "model.hidden_dim=12"),
    "2_egin_e_bonds": ("model=egin_e", "model.hidden_dim=8"),
    "3_egin_e_bonds": ("model=egin_e", "model.hidden_dim=12"),
}


@pytest.fixture(scope="module")
def swept(run_of, tmp_path_factory):
    """The directory of a sweep, with its table, and with a job that failed afterwards."""
    directory = tmp_path_factory.mktemp("sweep")
    for name, options in JOBS.items():
        shutil.copytree(run_of(*options), directory / name)
    publish_sweep(directory, Console(file=io.StringIO()))
    record_overrides(directory / "4_gin_bonds", "model=gin", "model.hidden_dim=9")
    (directory / "4_gin_bonds" / "error.txt").write_text("out of memory\n")
    return directory


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def table(capsys, monkeypatch):
    """The script in this process, on a terminal of this width."""

    def run(*arguments, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["table.py", *map(str, arguments)])
        code = 0
        try:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        except SystemExit as end:  # with a message: Python prints it and exits with 1
            code = 1
            print(end, file=sys.stderr)
        return Done(code, *capsys.readouterr())

    return run


def test_table_and_failed_job_are_printed_at_any_width(swept, table):
    written = (swept / "table.md").read_text()  # by the sweep, before a job failed
    done = table(swept, columns=30)
    assert done.returncode == 0, done.stderr
    for text in (
        "bonds: test accuracy",
        "protocol selected",
        "hidden_dim 8",
        "hidden_dim 12",
        "EGIN-E",
        "GIN",
    ):
        assert text in done.stdout
    assert "…" not in done.stdout and done.stdout.count("┃ model") == 3  # a column a time fits
    failed = next(line for line in done.stdout.splitlines() if "4_gin_bonds" in line)
    assert "model.hidden_dim=9" in failed and failed.endswith("out of memory")
    wide, narrow = (table(swept, columns=columns).stdout for columns in (200, 12))
    assert "…" not in narrow
    assert set(re.findall(r"\d+\.\d", wide)) == set(re.findall(r"\d+\.\d", narrow))
    assert wide.count("┃ model") == 1
    assert sorted(re.findall(r"\d+\.\d ± \d+\.\d", wide)) == sorted(
        re.findall(r"\d+\.\d ± \d+\.\d", done.stdout)
    )
    assert (swept / "table.md").read_text() == written  # without --out nothing is written


def test_files_comparison_and_another_protocol(swept, table, tmp_path):
    directories = [swept / name for name in ("0_gin_bonds", "2_egin_e_bonds")]
    done = table(
        *directories, "--compare", "egin_e", "gin", "--protocol", "last", "--paper", "--out", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "corrected resampled t-test" in done.stdout and "On bonds" in done.stdout
    assert "no validation set" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {
        "table.md",
        "table.csv",
        "table.tex",
        "table.png",
        "table.svg",
    }
    assert "EGIN-E against GIN" in (tmp_path / "table.md").read_text()
    with open(tmp_path / "table.csv", newline="") as file:
        assert {row["protocol"] for row in csv.DictReader(file)} >= {"selected", "common_epoch", "last"}


def test_errors_are_one_line(swept, table, tmp_path):
    for arguments, message in (
        ([tmp_path], "no run.json in or below"),
        ([swept, "--protocol", "lucky"], "valid: selected, common_epoch"),
        ([swept, "--compare", "egin_e", "gin"], "is ambiguous on bonds"),
    ):
        done = table(*arguments)
        assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1


def test_a_finished_sweep_writes_its_table(swept):
    console = Console(record=True, width=120, file=io.StringIO())
    unfinished = publish_sweep(swept, console)
    assert [run.folder.name for run in unfinished] == ["4_gin_bonds"]
    assert "1 job is not complete" in console.export_text()
    written = {path.name for path in swept.glob("table.*")}
    for path in swept.glob("table.*"):
        path.unlink()
    assert written == {"table.md", "table.csv", "table.tex", "table.png", "table.svg"}


def test_a_sweep_without_finished_jobs_has_no_table(swept, table, tmp_path):
    shutil.copytree(swept / "4_gin_bonds", tmp_path / "0_gin_bonds")
    console = Console(record=True, width=120, file=io.StringIO())
    (run,) = publish_sweep(tmp_path, console)
    assert run.error and "out of memory" in console.export_text()
    assert not list(tmp_path.glob("table.*"))
    done = table(tmp_path)
    assert done.returncode == 1 and "no run has a finished fold" in done.stderr
