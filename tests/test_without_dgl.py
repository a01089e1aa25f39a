"""Where DGL cannot be imported every model trains and predicts, and what needs DGL says so in one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT
from test_zoo import networks

# Found before the installed package by everything started in this environment, fold workers included.
BLOCKED = 'raise ModuleNotFoundError("No module named \'dgl\'", name="dgl")\n'
DATA = ["dataset=bonds", "cv.k=3", "cv.fold=0", "trainer.epochs=1"]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Run Python where `import dgl` fails."""
    directory = tmp_path_factory.mktemp("no_dgl")
    (directory / "dgl.py").write_text(BLOCKED)

    def run(*arguments, status=0):
        environment = {**os.environ, "PYTHONPATH": f"{directory}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    return run


def test_every_model_trains_for_an_epoch(numbers, python, tmp_path):
    models = ",".join([*networks(), "ewl_kernel"])
    python("scripts/train.py", "-m", f"model={models}", *DATA, f"hydra.sweep.dir={tmp_path}")
    finished = {path.parent.name.split("_", 1)[1] for path in Path(tmp_path).glob("*/summary.json")}
    assert finished == {f"{model}_bonds" for model in models.split(",")}


def test_a_run_is_trained_in_workers_predicted_explained_and_tabulated(numbers, python, tmp_path):
    molecules = ["dataset=smiles", "dataset.path=examples/molecules.csv", "dataset.target=activity"]
    options = [
        "cv.k=3",
        "cv.fold=[0,1]",
        "trainer.epochs=1",
        "trainer.fold_workers=2",
        f"hydra.run.dir={tmp_path / 'run'}",
    ]
    python("scripts/train.py", "trainer.fast=false", "model=egin_e", *molecules, *options)
    new = [f"run={tmp_path / 'run'}", "input=examples/new_molecules.csv"]
    python("scripts/predict.py", *new, f"out={tmp_path / 'predictions.csv'}")
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) > 1
    python("scripts/explain.py", *new, "graph=n01", f"out={tmp_path / 'explained'}")
    assert list(tmp_path.glob("explained*"))
    assert "EGIN-E" in python("scripts/table.py", tmp_path)


def test_what_needs_dgl_says_so(python, tmp_path):
    (tmp_path / "graphs.bin").write_bytes(bytes.fromhex("3fa1b446f04f2edd"))
    options = ["dataset=graphs", f"dataset.path={tmp_path / 'graphs.bin'}", "dataset.target=label"]
    out = python("scripts/train.py", *options, f"hydra.run.dir={tmp_path / 'run'}", status=1)
    assert "error: this needs DGL, which is not installed: " in out
    code = "from egin_dgl.data import bonds; bonds(graphs=2)[0]"
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.modules['dgl'] = None; " + code],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert "BackendError: this needs DGL" in done.stderr
