"""Killed and interrupted processes lose nothing but the time since the last checkpoint."""

import os
import signal
import subprocess
import time

import pytest
from running import SMALL, same_numbers


def wait_for(pattern, folder, process):
    end = time.monotonic() + 300
    while not list(folder.rglob(pattern)):
        assert time.monotonic() < end and process.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.02)


def test_killed_run_resumes_with_the_same_numbers(run_here, start, command, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    options = [*SMALL, "trainer.epochs=40", "trainer.checkpoint_every=5", "model.learn_eps=true"]
    run_here(whole, *options)
    process = start(*options, f"hydra.run.dir={broken}")
    wait_for("fold_*/last.pt", broken, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (broken / "summary.json").exists()
    done = command(f"resume={broken}")
    assert done.returncode == 0, done.stderr
    same_numbers(whole, broken)


def restore_sigint():
    """A job started in the background inherits that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_prints_how_to_resume(start, tmp_path):
    process = start(
        *SMALL,
        "trainer.epochs=5000",
        f"hydra.run.dir={tmp_path}",
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=restore_sigint,
    )
    wait_for("fold_*/last.pt", tmp_path, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: all processes of the group get it
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert f"resume={os.path.relpath(tmp_path)} resumes from here" in errors


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_sigterm_saves_the_current_epoch(start, command, run_here, tmp_path, kind):
    """As SLURM and Docker end a job. The only checkpoint is the one that the signal causes."""
    folder = tmp_path / kind
    options = [*SMALL, "trainer.epochs=60", "trainer.checkpoint_every=1000", "trainer.fold_workers=2"]
    where = ["-m", f"hydra.sweep.dir={folder}"] if kind == "sweep" else [f"hydra.run.dir={folder}"]
    process = start(*where, *options, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    wait_for("fold_*/best.safetensors", folder, process)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    assert "Traceback" not in errors
    assert errors.splitlines()[-1] == f"ended by SIGTERM; resume={kind} resumes from here"
    assert list(folder.rglob("fold_*/last.pt"))
    done = command(f"resume={kind}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run_here(tmp_path / "whole", *options, "trainer.fold_workers=1")
    (summary,) = folder.rglob("summary.json")
    same_numbers(tmp_path / "whole", summary.parent)
