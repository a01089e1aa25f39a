"""Sweeps as people run them: one command, many jobs, a table at the end; killed, continued, launched in parallel."""

import json
import os
import re
import signal
import time
from importlib.util import find_spec

import pytest
from running import SMALL, same_numbers

from egin_dgl.cli.sweep import continued
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
    """Two jobs that end well and one that cannot."""
    folder = tmp_path_factory.mktemp("sweep") / "here"
    done = sweep(folder, "model=egin,gin", "optimizer.lr=0.01,1e30", "trainer.checkpoint_every=1")
    return folder, done


def test_a_sweep_ends_in_a_table_and_names_the_jobs_that_failed(half_failed):
    folder, done = half_failed
    assert done.returncode == 1
    assert len(summaries(folder)) == 2
    for ending in ("md", "csv", "tex", "png"):
        assert (folder / f"table.{ending}").stat().st_size > 0
    assert "selected" in (folder / "table.md").read_text()
    for name in ("1_egin_bonds", "3_gin_bonds"):
        assert name in done.stdout
        # In a step, or in the look after the last of an epoch, whichever comes first.
        told = r"3 of 3 folds failed: fold 0, 1, 2: the (loss is|scores of the model are not finite)"
        assert re.match(told, (folder / name / "error.txt").read_text())
    assert [line for line in done.stderr.splitlines() if re.match(r"job \d", line)] == [
        f"job {number} of 4" for number in (1, 2, 3, 4)
    ]
    assert done.stderr.splitlines()[-1].startswith("error: 2 of 4 jobs did not end well; resume=")


def test_resume_runs_only_what_did_not_end_well(command, half_failed):
    folder, _ = half_failed
    before = {name: (folder / name / "summary.json").stat().st_mtime_ns for name in summaries(folder)}
    done = command(f"resume={folder}")
    assert done.returncode == 1  # the learning rate is still too large
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


def test_a_killed_sweep_goes_on_and_ends_with_the_numbers_of_an_unbroken_one(
    run_here, start_and_kill, command, tmp_path
):
    folder = tmp_path / "killed"
    start_and_kill(folder, "model.edge_dim=2,3", after="0_*/summary.json")
    first = (folder / "0_egin_e_bonds" / "summary.json").stat().st_mtime_ns
    assert len(summaries(folder)) == 1
    done = command(f"resume={folder}")
    assert done.returncode == 0, done.stderr
    assert len(summaries(folder)) == 2
    assert (folder / "0_egin_e_bonds" / "summary.json").stat().st_mtime_ns == first
    run_here(tmp_path / "unbroken", *TWO_EPOCHS, "model.edge_dim=3")
    same_numbers(folder / "1_egin_e_bonds", tmp_path / "unbroken")


def test_folds_in_parallel_jobs_are_one_cross_validation(run_here, sweep, tmp_path):
    done = sweep(tmp_path / "jobs", "cv.fold=0,1,2", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert done.returncode == 0, done.stderr
    one = run_here(tmp_path / "one", *TWO_EPOCHS)["protocols"]["selected"]
    table = (tmp_path / "jobs" / "table.md").read_text()
    assert f"{100 * one['mean']:.1f} ± {100 * one['std']:.1f}" in table


def test_submitit_runs_the_jobs_in_processes_of_their_own(sweep, tmp_path):
    done = sweep(tmp_path, "model=egin,gin", "cv.fold=0", "hydra/launcher=submitit_local")
    assert done.returncode == 0, done.stderr
    assert set(summaries(tmp_path)) == {"0_egin_bonds", "1_gin_bonds"}


@pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra: pip install -e '.[ray]'")
def test_ray_runs_the_jobs(sweep, tmp_path):
    done = sweep(tmp_path, "model=egin,gin", "cv.fold=0", "hydra/launcher=ray")
    assert done.returncode == 0, done.stderr
    assert set(summaries(tmp_path)) == {"0_egin_bonds", "1_gin_bonds"}


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_a_launcher_that_is_not_installed_is_told_with_its_extra(refused, tmp_path):
    done = refused(tmp_path, "-m", *TWO_EPOCHS, "model=egin,gin", "hydra/launcher=ray")
    assert done.stderr.splitlines() == [
        "error: hydra/launcher=ray is in a package that is not installed: pip install hydra-ray-launcher"
    ]


def trials(folder):
    import optuna

    return optuna.load_study(study_name="search", storage=f"sqlite:///{folder}/study.db").trials


def test_a_search_maximizes_the_validation_score_outlives_failures_and_goes_on_when_killed(
    start_and_kill, command, tmp_path
):
    search = [
        "cv.fold=0",
        "optimizer.lr=choice(0.01,1e30)",
        "hydra/sweeper=optuna",
        "hydra.sweeper.n_trials=4",
    ]
    start_and_kill(tmp_path, *search, "hydra.sweeper.sampler.seed=0", after="1_*/run.json")
    done = command(f"resume={tmp_path}")
    assert done.returncode == 1  # some trials failed
    states = [trial.state.name for trial in trials(tmp_path)]
    ended = summaries(tmp_path)
    assert states.count("COMPLETE") == len(ended) >= 1
    assert states.count("FAIL") >= 1
    assert states.count("COMPLETE") + states.count("FAIL") == 4
    aside = {path.name for path in tmp_path.glob(".cut_off_*")}
    assert len(aside) == 1
    continued(SweepDir(tmp_path))  # what was put aside stays as it is
    assert {path.name for path in tmp_path.glob(".cut_off_*")} == aside
    assert len(SweepDir(tmp_path).jobs()) == 4
    values = [trial.value for trial in trials(tmp_path) if trial.value is not None]
    assert sorted(values) == sorted(summary["validation_score"] for summary in ended.values())


def test_a_search_without_a_validation_part_is_refused(refused, tmp_path):
    options = ["cv=paper", "cv.k=3", "optimizer.lr=choice(0.01,0.1)", "hydra/sweeper=optuna"]
    done = refused(tmp_path, "-m", *TWO_EPOCHS, *options, "hydra.sweeper.n_trials=1")
    assert "a search goes by the validation part, which this cv has not; use cv=ten_fold" in done.stdout


def test_jobs_started_together_never_share_a_folder(start, tmp_path):
    together = [start(*TWO_EPOCHS, "cv.fold=0", cwd=tmp_path) for _ in range(2)]
    assert [process.wait(timeout=240) for process in together] == [0, 0]
    assert len(list(tmp_path.glob("outputs/bonds/egin_e/*/summary.json"))) == 2


def test_a_folder_where_another_process_is_at_work_is_left_alone(refused, tmp_path):
    from filelock import FileLock

    with FileLock(tmp_path / ".lock"):
        done = refused(tmp_path, *TWO_EPOCHS, f"hydra.run.dir={tmp_path}")
    assert f"another process is at work in {tmp_path}" in done.stderr
    assert not (tmp_path / "run.json").exists()
