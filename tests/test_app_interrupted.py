"""Real processes killed: nothing is lost but the time since the last checkpoint."""

import os
import signal
import subprocess
import time

import pytest
from running import SMALL, same_numbers


def test_a_killed_run_resumes_and_ends_with_the_same_numbers(run_here, start, command, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    options = [*SMALL, "trainer.epochs=40", "trainer.checkpoint_every=5", "model.learn_eps=true"]
    run_here(whole, *options)
    process = start(*options, f"hydra.run.dir={broken}")
    end = time.monotonic() + 300
    while not list(broken.glob("fold_*/last.pt")):
        assert time.monotonic() < end and process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (broken / "summary.json").exists()
    done = command(f"resume={broken}")
    assert done.returncode == 0, done.stderr
    same_numbers(whole, broken)


def as_in_a_terminal():
    """A job started in the background inherits that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_ends_in_one_line_that_says_how_to_go_on(start, tmp_path):
    process = start(
        *SMALL,
        "trainer.epochs=5000",
        f"hydra.run.dir={tmp_path}",
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=as_in_a_terminal,
    )
    end = time.monotonic() + 300
    while not list(tmp_path.glob("fold_*/last.pt")):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does: all processes of the group get it
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert f"resume={os.path.relpath(tmp_path)} goes on from here" in errors


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_sigterm_saves_the_epoch_at_hand_and_says_how_to_go_on(start, command, run_here, tmp_path, kind):
    """As SLURM and Docker end a job. There is no checkpoint but the one that the signal asks for."""
    folder = tmp_path / kind
    options = [*SMALL, "trainer.epochs=60", "trainer.checkpoint_every=1000", "trainer.fold_workers=2"]
    where = ["-m", f"hydra.sweep.dir={folder}"] if kind == "sweep" else [f"hydra.run.dir={folder}"]
    process = start(*where, *options, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    end = time.monotonic() + 300
    while not list(folder.rglob("fold_*/best.safetensors")):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.02)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    assert "Traceback" not in errors
    assert errors.splitlines()[-1] == f"ended by SIGTERM; resume={kind} goes on from here"
    assert list(folder.rglob("fold_*/last.pt"))
    done = command(f"resume={kind}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run_here(tmp_path / "whole", *options, "trainer.fold_workers=1")
    (summary,) = folder.rglob("summary.json")
    same_numbers(tmp_path / "whole", summary.parent)
