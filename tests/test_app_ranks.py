"""`trainer.ranks` and torchrun: how many ranks there are, what is recorded, and how such a run stops and resumes."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import running
from running import SCRIPT, SMALL, same_numbers, settings_of

from egin_dgl.cli import ranks as cli_ranks
from egin_dgl.cli.experiment import make_experiment
from egin_dgl.cli.ranks import pick_ranks, set_ranks
from egin_dgl.data.splits import Split
from egin_dgl.errors import ConfigError
from egin_dgl.runs.run_dir import RunDir

HOLDOUT = [*SMALL, "cv=holdout", "trainer.epochs=12", "trainer.checkpoint_every=2"]
GRAPHS = 60
DATA = ["dataset=bonds", f"dataset.graphs={GRAPHS}", "device=cpu"]


@pytest.fixture
def pick(tmp_path, monkeypatch):
    """The ranks of one split of a set that counts as large, on four cores."""
    monkeypatch.setattr(cli_ranks, "LARGE", 100)

    def picked(*options, cores=4, is_single=True):
        settings = settings_of(*DATA, *options)
        run = RunDir(tmp_path / str(time.perf_counter_ns()))
        run.register(running.run_spec(*DATA, *options))
        split = Split(np.arange(50), np.arange(50, 55), np.arange(55, GRAPHS))
        found = pick_ranks(make_experiment(settings), {0: split}, settings, cores, run, is_single)
        assert found == 1 or run.read_record()["ranks"] == [found]
        return found

    return picked


def test_auto_takes_all_cores_for_one_split_of_a_large_set(pick, monkeypatch):
    assert pick("trainer.batch_size=256", cores=4) == 4
    assert pick("trainer.batch_size=128", cores=4) == 2
    assert pick("trainer.batch_size=8") == 1
    assert pick("trainer.batch_size=256", is_single=False) == 1
    assert pick("trainer.batch_size=256", "reproducible=any") == 1
    assert pick("trainer.batch_size=256", "model=wl_kernel") == 1
    monkeypatch.setattr(cli_ranks, "LARGE", 10**6)
    assert pick("trainer.batch_size=256") == 1


def test_a_number_of_ranks_is_taken_or_refused(pick):
    assert pick("trainer.ranks=3", is_single=False) == 3
    with pytest.raises(ConfigError, match=r"trainer.ranks=9 needs as many graphs in a batch, .* give 8"):
        pick("trainer.ranks=9", "trainer.batch_size=8")
    with pytest.raises(ConfigError, match=r"trainer.ranks must be .*, got 0"):
        set_ranks(settings_of(*DATA), "0")


def test_a_resumed_run_keeps_its_ranks_and_reports_others(tmp_path, caplog):
    run = RunDir(tmp_path / "run")
    run.register(running.run_spec(*DATA))
    run.register_ranks(2)
    run.register_ranks(2)
    assert run.read_record()["ranks"] == [2] and not caplog.records
    settings = settings_of(*DATA)
    split = Split(np.arange(50), np.arange(50, 55), np.arange(55, GRAPHS))
    assert pick_ranks(make_experiment(settings), {0: split}, settings, 1, run, True) == 2
    run.register_ranks(1)
    assert run.read_record()["ranks"] == [2, 1]
    assert "trained with trainer.ranks=2 and resumes with 1" in caplog.text


def torchrun(*options, agents=1, **popen):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={agents}"]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*launcher, SCRIPT, *running.seeded(options)], **(quiet | popen))


@pytest.mark.slow
def test_torchrun_trains_what_local_ranks_train(numbers, run_here, command, tmp_path):
    local, launched = tmp_path / "local", tmp_path / "launched"
    run_here(local, *HOLDOUT, "trainer.ranks=2")
    process = torchrun(*HOLDOUT, f"hydra.run.dir={launched}", agents=2)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert output.count("selected") == 1 + output.count("selected, other metrics")  # one rank prints
    same_numbers(local, launched)
    assert json.loads((launched / "run.json").read_text())["ranks"] == [2]


@pytest.mark.slow
def test_sigterm_stops_all_ranks_and_the_run_resumes_with_another_number(start, command, tmp_path):
    folder = tmp_path / "run"
    options = [*HOLDOUT, "trainer.epochs=2000", "trainer.checkpoint_every=1000", "trainer.ranks=2"]
    process = start(*options, f"hydra.run.dir={folder}", stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    end = time.monotonic() + 300
    while not list(folder.rglob("events*")):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143 and "Traceback" not in errors, errors
    assert errors.splitlines()[-1] == "ended by SIGTERM; resume=run resumes from here"
    epochs = len(RunDir(folder).fold(0).progress().history)
    assert 0 < epochs < 2000
    running.edit_settings(folder, lambda settings: settings["trainer"].update(epochs=epochs + 2))
    done = command("resume=run", "trainer.ranks=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trained with trainer.ranks=2 and resumes with 1" in (folder / "train.log").read_text()
    assert json.loads((folder / "run.json").read_text())["ranks"] == [2, 1]


@pytest.mark.slow
def test_other_ranks_of_torchrun_are_silent_about_an_error(numbers, tmp_path):
    """The first rank prints the sentence, and no rank stays behind."""
    process = torchrun("dataset=bonds", "dataset.graphs=2", f"hydra.run.dir={tmp_path}", agents=2)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert [line for line in errors.splitlines() if line.startswith("error:")] == [
        "error: cv.k must be an integer from 2 to 2, the number of graphs, got 10"
    ]
