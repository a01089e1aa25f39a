"""Without the package fast/ the app trains, predicts and keeps the laws of the zoo: it costs speed and nothing else."""

import os
import shutil
import subprocess
import sys

import pytest
from running import ROOT

LAWS = "permutation or batch_equals or odd_graphs"
MODELS = "egin_e or gine"
NEW = "examples/new_molecules.csv"
OPTIONS = ["model=egin_e", "dataset=smiles", "dataset.path=examples/molecules.csv", "dataset.target=activity"]
OPTIONS += ["cv.k=3", "cv.fold=0", "trainer.epochs=1"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The source tree without fast/."""
    copy = tmp_path_factory.mktemp("without_fast") / "tree"
    for name in ("egin_dgl", "conf", "scripts", "tests", "pyproject.toml", "examples"):
        source = ROOT / name
        ignore = shutil.ignore_patterns("__pycache__", "fast")
        shutil.copytree(source, copy / name, ignore=ignore) if source.is_dir() else shutil.copy(source, copy)
    # An editable install would find fast/ in the original tree.
    (copy / "sitecustomize.py").write_text(
        "import sys\nsys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n"
    )
    find = "from egin_dgl.models.dispatch import fast_package; print(fast_package())"
    assert run(copy, "-c", find).split()[-1] == "None"
    return copy


def run(tree, *arguments):
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_training_and_prediction(numbers, tree, tmp_path):
    """The same digits as trainer.fast=false with fast/ installed."""
    run(tree, "scripts/train.py", f"hydra.run.dir={tmp_path / 'without'}", *OPTIONS)
    out = tmp_path / "predictions.csv"
    run(tree, "scripts/predict.py", f"run={tmp_path / 'without'}", f"input={NEW}", f"out={out}")
    assert len(out.read_text().splitlines()) > 1
    run(ROOT, "scripts/train.py", "trainer.fast=false", f"hydra.run.dir={tmp_path / 'off'}", *OPTIONS)
    without, off = ((tmp_path / name / "fold_00" / "history.csv").read_text() for name in ("without", "off"))
    assert drop_seconds(without) == drop_seconds(off)


def drop_seconds(history):
    rows = [line.split(",") for line in history.splitlines()]
    column = rows[0].index("seconds")
    return [row[:column] + row[column + 1 :] for row in rows]


@pytest.mark.slow
def test_laws_of_the_zoo(tree):
    out = run(
        tree,
        "-m",
        "pytest",
        "-n",
        "0",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/test_zoo.py",
        "-k",
        f"({LAWS}) and ({MODELS})",
    )
    assert "100%" in out and "F" not in out.split("100%")[0]
