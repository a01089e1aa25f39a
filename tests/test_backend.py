"""Import of DGL."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT, SCRIPT


def run_with_broken_dgl(folder: Path, raising: str, *overrides: str) -> subprocess.CompletedProcess:
    (folder / "dgl").mkdir()
    (folder / "dgl" / "__init__.py").write_text(raising)
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, SCRIPT, *overrides],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_damaged_installation_is_reported_once_and_training_continues_without_dgl(numbers, tmp_path):
    raising = 'raise FileNotFoundError("Cannot find DGL C++ graphbolt library at /x.so\\nmore")'
    done = run_with_broken_dgl(
        tmp_path, raising, "trainer=smoke", "cv.fold=0", "dataset=bonds", "trainer.fast=false"
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if "DGL" in line]
    assert "cannot be imported with torch 2." in line
    assert "Cannot find DGL C++ graphbolt library" in line
    assert "Until then models run without DGL" in line
    assert "Traceback" not in done.stderr


def test_import_prints_nothing_and_writes_nothing_to_home(tmp_path):
    pytest.importorskip("dgl", reason="DGL is not installed")
    environment = {key: value for key, value in os.environ.items() if key != "DGLBACKEND"} | {
        "HOME": str(tmp_path)
    }
    done = subprocess.run(
        [sys.executable, "-c", "from egin_dgl.backend import import_dgl; import_dgl()"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / ".dgl").exists()
