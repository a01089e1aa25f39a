"""Where DGL cannot be imported every model trains and predicts, and what needs DGL says so in one sentence."""

import os
import subprocess
import sys

import pytest
from running import ROOT
from test_zoo import networks

# Found before the installed package by everything started in this environment, fold workers included.
BLOCKED = 'raise ModuleNotFoundError("No module named \'dgl\'", name="dgl")\n'
EVERY_MODEL = """
import sys, networkx as nx
from egin_dgl.api import EGINClassifier
from egin_dgl.data import bonds
from egin_dgl.errors import BackendError
assert "dgl" not in sys.modules
graphs = [nx.cycle_graph(n) for n in (3, 4, 5, 6)] + [nx.path_graph(n) for n in (3, 4, 5, 6)]
for graph in graphs:
    nx.set_edge_attributes(graph, {edge: "ab"[i % 2] for i, edge in enumerate(graph.edges)}, "bond")
for model in sys.argv[1:]:
    fitted = EGINClassifier(model, hidden_dim=8, epochs=1, validation=0, options={"trainer.fast": False})
    assert fitted.fit(graphs, ["ring"] * 4 + ["path"] * 4).predict_proba(graphs).shape == (8, 2)
    print(model)
try:
    bonds(graphs=2)[0]
except BackendError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Run Python where `import dgl` fails."""
    directory = tmp_path_factory.mktemp("no_dgl")
    (directory / "dgl.py").write_text(BLOCKED)

    def run(*arguments, status=0):
        environment = {**os.environ, "PYTHONPATH": f"{directory}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
        words = [sys.executable, *map(str, arguments)]
        done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.mark.slow
def test_every_model_trains_and_predicts(numbers, python):
    *trained, sentence = python("-c", EVERY_MODEL, *networks(), "ewl_kernel").splitlines()
    assert trained == [*networks(), "ewl_kernel"]
    assert sentence.startswith("this needs DGL, which is not installed: ")


@pytest.mark.slow
def test_a_run_is_trained_in_workers_predicted_explained_and_tabulated(numbers, python, tmp_path):
    molecules = ["dataset=smiles", "dataset.path=examples/molecules.csv", "dataset.target=activity"]
    options = ["cv.k=3", "cv.fold=[0,1]", "trainer.epochs=1", "trainer.fold_workers=2"]
    options += ["model=edge_gat", f"hydra.run.dir={tmp_path / 'run'}"]
    python("scripts/train.py", *molecules, *options)
    new = [f"run={tmp_path / 'run'}", "input=examples/new_molecules.csv"]
    python("scripts/predict.py", *new, f"out={tmp_path / 'predictions.csv'}")
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) > 1
    python("scripts/explain.py", *new, "graph=n01", f"out={tmp_path / 'explained'}")
    assert list(tmp_path.glob("explained*"))
    assert "EdgeGAT" in python("scripts/table.py", tmp_path)


@pytest.mark.slow
def test_a_file_of_dgl_is_refused_in_one_sentence(numbers, python, tmp_path):
    (tmp_path / "graphs.bin").write_bytes(bytes.fromhex("3fa1b446f04f2edd"))
    options = ["dataset=graphs", f"dataset.path={tmp_path / 'graphs.bin'}", "dataset.target=label"]
    out = python("scripts/train.py", *options, f"hydra.run.dir={tmp_path / 'run'}", status=1)
    assert "error: this needs DGL, which is not installed: " in out
