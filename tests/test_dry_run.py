"""`dry_run=true` prints the jobs of a command or directory and the time left, and changes nothing."""

import re
import shutil

import pytest
import running

from egin_dgl.cli.overrides import parse_arguments
from egin_dgl.cli.resume import resume
from egin_dgl.reporting.many_runs.plan import format_seconds
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import RunSpec
from egin_dgl.runs.sweep_dir import SweepDir, SweepJob, SweepRecord


def contents(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture
def sweep(small_run, tmp_path):
    """A sweep of three jobs: one has finished, one has a finished fold, one has not begun."""
    spec = RunDir(small_run).load_spec()
    names = ("0_gin_bonds", "1_gin_bonds", "2_gin_bonds")
    sweep = SweepDir(tmp_path / "sweep")
    jobs = [SweepJob(name, RunSpec(spec.settings, overrides=["model=gin", name])) for name in names]
    sweep.register(SweepRecord(jobs))
    for name in names[:2]:
        shutil.copytree(small_run, sweep.path / name)
    run = RunDir(sweep.path / names[1])
    run.summary.unlink()
    for fold in ("fold_01", "fold_02"):
        shutil.rmtree(run.path / fold)
    return sweep


def dry_run(path):
    resume(parse_arguments([f"resume={path}", "dry_run=true"]))


def test_sweep_is_listed_with_the_time_left(sweep, capsys):
    before = contents(sweep.path)
    dry_run(sweep.path)
    assert contents(sweep.path) == before
    *jobs, end = capsys.readouterr().out.splitlines()
    assert [" ".join(re.sub(r"\d+ s", "# s", line).split()) for line in jobs] == [
        "1 finished in # s 0_gin_bonds",
        "2 33% trained 1_gin_bonds",
        "3 not started 2_gin_bonds",
    ]
    seconds = RunDir(sweep.path / "0_gin_bonds").load_finished(sweep.load().jobs[0].spec.settings)["seconds"]
    left = format_seconds(seconds * (2 / 3 + 1))
    assert end == f"3 jobs, 1 finished; about {left} left, estimated from those; in {sweep.path}"


def test_finished_run_is_listed(small_run, capsys):
    before = contents(small_run)
    dry_run(small_run)
    assert contents(small_run) == before
    assert "1 job, 1 finished; nothing is left; in " in capsys.readouterr().out


def test_composed_sweep_and_run_start_nothing(unwatched, tmp_path):
    one_of_an_experiment = ["experiment=paper_quick", "dataset=mutag", "model=gin"]
    for options, jobs in ((["-m", "model=gin,egin"], 2), ([], 1), (one_of_an_experiment, 2)):
        with unwatched():
            done = running.command(*options, "dry_run=true", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) == jobs + 1 and "unknown until the first one has finished" in lines[-1]
        assert not list(tmp_path.iterdir())


def test_times():
    assert [format_seconds(value) for value in (4.4, 150, 7290)] == ["4 s", "2 min", "2 h 2 min"]
