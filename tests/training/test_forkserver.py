"""The forkserver of fold workers."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from egin_dgl.cli.experiment import make_experiment
from egin_dgl.cli.validation import resolve_settings
from egin_dgl.training.parallel.processes import HAS_FORKSERVER

ROOT = Path(__file__).resolve().parents[2]
WORKER = """
import os, sys

def report(file):
    loaded = {"torch", "egin_dgl.training.trainer"} <= sys.modules.keys()
    file.write_text(f"{loaded} {len(os.listdir('/proc/self/task'))} {sys.modules['egin_dgl'].__file__}")
"""
PARENT = """
import sys
from pathlib import Path
from egin_dgl.training.parallel.processes import start_forkserver, fold_worker_context
from worker import report
if __name__ == "__main__":
    start_forkserver()
    assert "torch" not in sys.modules
    child = fold_worker_context().Process(target=report, args=(Path("reported"),))
    child.start()
    child.join()
"""


@pytest.mark.skipif(not HAS_FORKSERVER, reason="no forkserver: workers are spawned")
def test_worker_has_torch_loaded_one_thread_and_our_package(tmp_path):
    """The parent has not loaded torch; a package in the current directory is not imported."""
    scripts, here = tmp_path / "scripts", tmp_path / "here"
    (here / "egin_dgl").mkdir(parents=True)
    (here / "egin_dgl" / "__init__.py").write_text("__file__ = 'somebody else'")
    scripts.mkdir()
    (scripts / "worker.py").write_text(WORKER)
    (scripts / "parent.py").write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, scripts / "parent.py"], cwd=here, env=environment, check=True, timeout=120
    )
    assert (here / "reported").read_text() == f"True 1 {ROOT / 'egin_dgl' / '__init__.py'}"


READER = """
import pickle, sys
from pathlib import Path
import egin_dgl.training.parallel.preload
before = set(sys.modules)
train, recipe = pickle.loads(Path(sys.argv[1]).read_bytes())
print("read:", *sorted({name.partition(".")[0] for name in sys.modules.keys() - before}), flush=True)
"""


def test_jobs_need_no_further_import_in_the_worker(tmp_path):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        experiment = make_experiment(
            resolve_settings(
                compose("train", ["dataset=bonds", "dataset.graphs=20", "model=gat", "cv=nested"])
            )
        )
    sent = tmp_path / "sent"
    sent.write_bytes(pickle.dumps((experiment.train, experiment.recipe)))
    read = subprocess.run(
        [sys.executable, "-c", READER, sent], capture_output=True, text=True, check=True, timeout=120
    )
    assert read.stdout.split() == ["read:"]
