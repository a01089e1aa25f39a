"""Import of DGL."""

import os
import subprocess
import sys
from pathlib import Path

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


def test_missing_library_is_reported_with_versions_and_pip_command(tmp_path, unwatched):
    raising = 'raise FileNotFoundError("Cannot find DGL C++ graphbolt library at /x.so\\nmore")'
    with unwatched():  # without DGL nothing is trained
        done = run_with_broken_dgl(tmp_path, raising)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: DGL ")
    assert "cannot be imported with torch 2." in line
    assert "Cannot find DGL C++ graphbolt library" in line
    assert "pip install dgl==" in line
    assert "Traceback" not in done.stderr


def test_import_prints_nothing_and_writes_nothing_to_home(tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "DGLBACKEND"} | {
        "HOME": str(tmp_path)
    }
    done = subprocess.run(
        [sys.executable, "-c", "import egin_dgl.layers, egin_dgl.models, egin_dgl.ewl, egin_dgl.data"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / ".dgl").exists()
