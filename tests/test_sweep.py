"""Sweeps: recorded before the first job, a table at the end; killed, resumed, run by launchers."""

import json
import os
import re
import shutil
import signal
import sys
import time
from importlib.util import find_spec

import pytest
from running import SMALL, same_numbers

from egin_dgl.runs.sweep_dir import SweepDir

TWO_EPOCHS = [*SMALL, "trainer.epochs=2", "trainer.fold_workers=1", "device=cpu"]


@pytest.fixture(scope="module")
def sweep(command):
    def run(folder, *options):
        return command("-m", *TWO_EPOCHS, *options, f"hydra.sweep.dir={folder}")

    return run


def summaries(folder):
    found = sorted(folder.glob("*/summary.json"))
    return {path.parent.name: json.loads(path.read_text()) for path in found}


@pytest.fixture
def start_and_kill(start):
    """Start a sweep in a group of its own; kill all of it once `after` appears below its folder."""

    def run(folder, *options, after):
        process = start("-m", *TWO_EPOCHS, *options, f"hydra.sweep.dir={folder}", start_new_session=True)
        deadline = time.monotonic() + 240
        while not list(folder.glob(after)):
            assert process.poll() is None and time.monotonic() < deadline, f"{after} never appeared"
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    return run


@pytest.fixture(scope="module")
def half_failed(sweep, tmp_path_factory):
    """Two jobs that finish and two that cannot."""
    folder = tmp_path_factory.mktemp("sweep") / "here"
    done = sweep(folder, "model=egin,gin", "optimizer.lr=0.01,1e30", "trainer.checkpoint_every=1")
    return folder, done


def test_sweep_ends_in_a_table_with_failed_jobs(half_failed):
    folder, done = half_failed
    assert done.returncode == 1
    assert len(summaries(folder)) == 2
    for ending in ("md", "csv", "tex", "png"):
        assert (folder / f"table.{ending}").stat().st_size > 0
    assert "selected" in (folder / "table.md").read_text()
    for name in ("1_egin_bonds", "3_gin_bonds"):
        assert name in done.stdout
        # In a step or in the evaluation after it, whichever comes first.
        message = r"3 of 3 folds failed: fold 0, 1, 2: the (loss is|model's logits are not finite)"
        assert re.match(message, (folder / name / "error.txt").read_text())
    assert [line for line in done.stderr.splitlines() if re.match(r"job \d", line)] == [
        f"job {number} of 4" for number in (1, 2, 3, 4)
    ]
    assert re.search(r"^error: 2 of 4 jobs failed; resume=", done.stderr, re.MULTILINE)


def test_bad_point_is_reported_before_any_job(refused, tmp_path):
    for options, message in (
        (
            ["model=gin,egin", "model.hidden_dim=8,-3"],
            "error: job 3 (model.hidden_dim=-3 model=gin): model.hidden_dim",
        ),
        (["model=gin,ginn"], "error: model has no option 'ginn'"),
    ):
        done = refused(tmp_path, "-m", *TWO_EPOCHS, *options, f"hydra.sweep.dir={tmp_path / 'sweep'}")
        (line,) = done.stderr.splitlines()
        assert line.startswith(message)
        assert not (tmp_path / "sweep").exists()


def test_resume_runs_only_unfinished_jobs(command, half_failed):
    folder, _ = half_failed
    before = {name: (folder / name / "summary.json").stat().st_mtime_ns for name in summaries(folder)}
    done = command(f"resume={folder}")
    assert done.returncode == 1  # the learning rate is still too large
    assert re.findall(r"^job .*", done.stderr, re.MULTILINE) == ["job 2 of 4", "job 4 of 4"]
    assert before == {name: (folder / name / "summary.json").stat().st_mtime_ns for name in summaries(folder)}
    assert "1_egin_bonds" in done.stdout


def test_tensorboard_has_one_row_of_hyper_parameters_per_job(half_failed):
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    folder, _ = half_failed
    events = EventMultiplexer().AddRunsFromDirectory(str(folder))
    events.Reload()
    rows = events.PluginRunToTagToContent("hparams")
    assert set(rows) == {"0_egin_bonds", "2_gin_bonds"}
    for run in rows:
        tags = events.Runs()[run]
        assert {"accuracy (final)/selected", "accuracy/test"} <= {*tags["scalars"], *tags["tensors"]}


@pytest.mark.slow
def test_killed_sweep_resumes_with_the_same_numbers(run_here, start_and_kill, command, tmp_path):
    """With a launcher of the resuming command, in a directory whose name Hydra could not read."""
    folder = tmp_path / "killed"
    start_and_kill(folder, "model.edge_dim=2,3", after="0_*/summary.json")
    first = (folder / "0_egin_e_bonds" / "summary.json").stat().st_mtime_ns
    assert len(summaries(folder)) == 1
    folder = folder.rename(tmp_path / "s${b},=")
    foreign = tmp_path / ".foreign"  # a working directory whose modules must not be imported by workers
    foreign.mkdir()
    for name in ("joblib", "multiprocessing", "cloudpickle"):
        (foreign / f"{name}.py").write_text(f"open({str(foreign / 'canary')!r}, 'w')")
    done = command(f"resume={folder}", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", cwd=foreign)
    assert done.returncode == 0, done.stderr
    assert sys.version_info < (3, 11) or not (foreign / "canary").exists()
    shutil.rmtree(foreign)
    assert len(summaries(folder)) == 2 and [path.name for path in tmp_path.iterdir()] == [folder.name]
    assert (folder / "0_egin_e_bonds" / "summary.json").stat().st_mtime_ns == first
    run_here(tmp_path / "unbroken", *TWO_EPOCHS, "model.edge_dim=3")
    same_numbers(folder / "1_egin_e_bonds", tmp_path / "unbroken")


@pytest.mark.slow
def test_folds_in_parallel_jobs_are_one_cross_validation(run_here, sweep, tmp_path):
    done = sweep(tmp_path / "jobs", "cv.fold=0,1,2", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert done.returncode == 0, done.stderr
    one = run_here(tmp_path / "one", *TWO_EPOCHS)["protocols"]["selected"]
    table = (tmp_path / "jobs" / "table.md").read_text()
    assert f"{100 * one['mean']:.1f} ± {100 * one['std']:.1f}" in table


@pytest.mark.slow
def test_submitit_runs_and_resumes_jobs(sweep, command, tmp_path):
    done = sweep(tmp_path / "sweep", "model=egin,gin", "cv.fold=0", "hydra/launcher=submitit_local")
    assert done.returncode == 0, done.stderr
    assert set(summaries(tmp_path / "sweep")) == {"0_egin_bonds", "1_gin_bonds"}
    (tmp_path / "sweep" / "1_gin_bonds" / "summary.json").unlink()
    done = command("resume=sweep", "hydra/launcher=submitit_local", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(summaries(tmp_path / "sweep")) == 2


@pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra: pip install -e '.[ray]'")
def test_ray_runs_the_jobs(sweep, tmp_path):
    done = sweep(tmp_path, "model=egin,gin", "cv.fold=0", "hydra/launcher=ray")
    assert done.returncode == 0, done.stderr
    assert set(summaries(tmp_path)) == {"0_egin_bonds", "1_gin_bonds"}


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_missing_launcher_names_its_package(refused, tmp_path):
    done = refused(tmp_path, "-m", *TWO_EPOCHS, "model=egin,gin", "hydra/launcher=ray")
    assert done.stderr.splitlines() == [
        "error: hydra/launcher=ray is in a package that is not installed: pip install hydra-ray-launcher"
    ]


def trials(folder):
    import optuna

    return optuna.load_study(study_name="search", storage=f"sqlite:///{folder}/study.db").trials


@pytest.mark.slow
def test_search_maximizes_the_validation_score_and_continues_when_killed(
    start_and_kill, sweep, command, tmp_path
):
    search = [
        "cv.fold=0",
        "optimizer.lr=choice(0.01,1e30)",
        "hydra/sweeper=optuna",
        "hydra.sweeper.n_trials=4",
    ]
    search += ["hydra.sweeper.sampler.seed=0"]
    start_and_kill(tmp_path, *search, after="1_*/run.json")
    done = command(f"resume={tmp_path}")
    assert f"holds a search: type its command again with hydra.sweep.dir={tmp_path}" in done.stderr
    done = sweep(tmp_path, *search)
    assert done.returncode == 1  # some trials failed
    states = [trial.state.name for trial in trials(tmp_path)]
    finished = summaries(tmp_path)
    assert states.count("COMPLETE") == len(finished) >= 1
    assert states.count("FAIL") >= 1
    assert states.count("COMPLETE") + states.count("FAIL") == 4
    assert len(list(tmp_path.glob(".interrupted_*"))) == 1 and len(SweepDir(tmp_path).runs()) == 4
    values = [trial.value for trial in trials(tmp_path) if trial.value is not None]
    assert sorted(values) == sorted(summary["validation_score"] for summary in finished.values())


def test_search_without_a_validation_set_is_refused(refused, tmp_path):
    options = ["cv=paper", "cv.k=3", "optimizer.lr=choice(0.01,0.1)", "hydra/sweeper=optuna"]
    done = refused(tmp_path, "-m", *TWO_EPOCHS, *options, "hydra.sweeper.n_trials=1")
    assert "a search maximizes the validation score, and this cv has no validation set" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_runs_started_together_have_different_directories(start, tmp_path):
    together = [start(*TWO_EPOCHS, "cv.fold=0", cwd=tmp_path) for _ in range(2)]
    assert [process.wait(timeout=240) for process in together] == [0, 0]
    assert len(list(tmp_path.glob("outputs/bonds/egin_e/*/summary.json"))) == 2


def test_locked_directory_is_refused(refused, tmp_path):
    from filelock import FileLock

    with FileLock(tmp_path / ".lock"):
        done = refused(tmp_path, *TWO_EPOCHS, f"hydra.run.dir={tmp_path}")
    assert f"another process is at work in {tmp_path}" in done.stderr
    assert not (tmp_path / "run.json").exists()
