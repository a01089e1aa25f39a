"""Real processes killed: nothing is lost but the time since the last checkpoint."""

import os
import signal
import subprocess
import time

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
