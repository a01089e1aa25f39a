"""Fold workers: same numbers for any number of them, failures reported, no orphans."""

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from running import SMALL
from threadpoolctl import threadpool_info, threadpool_limits

from egin_dgl.data import load_tu
from egin_dgl.data.dataset import TENSORS
from egin_dgl.data.mmap_dataset import mapped
from egin_dgl.errors import ConfigError, TrainingError
from egin_dgl.models import EGIN, EGINE
from egin_dgl.training.parallel.resources import CpuBudget
from egin_dgl.training.parallel.workers import one_thread, train_folds


class KillsItsProcess(EGIN):
    """Kills the fold's process, as the system does when out of memory."""

    def __init__(self, *args, **options):
        os.kill(os.getpid(), signal.SIGKILL)


def test_numbers_are_independent_of_the_number_of_workers(data, make_job):
    """And workers map the dataset from a file in the run's directory, removed afterwards, not from shared memory."""
    mapped_files = set()

    def run(workers):
        jobs = [make_job(fold, folder=f"workers_{workers}") for fold in range(3)]
        seen = []

        def on_epoch(fold, record):
            seen.append((fold, record.epoch))
            for pid in (os.getpid(), *descendants(os.getpid())):
                with suppress(OSError), open(f"/proc/{pid}/maps") as maps:
                    mapped_files.update(os.path.basename(line.split()[-1]) for line in maps if "/" in line)

        results = train_folds(data, jobs, on_epoch, CpuBudget(workers))
        assert sorted(seen) == [(fold, epoch) for fold in range(3) for epoch in range(1, 7)]
        assert not list(jobs[0].folder.path.parent.glob(".*"))
        history = [[replace(record, seconds=0) for record in result.history] for result in results]
        return repr(history), torch.stack([result.test_logits for result in results])

    (one, one_logits), (two, two_logits) = run(1), run(2)
    assert one == two
    assert torch.equal(one_logits, two_logits)
    assert not [name for name in mapped_files if name.startswith("torch_")]
    assert [name for name in mapped_files if name.startswith(".dataset.safetensors.")]


def test_one_thread_limits_every_pool_and_restores_it():
    def threads():
        return [pool["num_threads"] for pool in threadpool_info()]

    with threadpool_limits(2):
        before = threads()
        with one_thread():
            assert set(threads()) == {1} and torch.get_num_threads() == 1
        assert threads() == before and 2 in before


@pytest.mark.parametrize("workers", [1, 2])
def test_failing_fold_is_reported_and_others_finish(data, make_job, workers):
    jobs = [make_job(0), make_job(1, lr=1e30), make_job(2)]
    with pytest.raises(
        TrainingError, match=r"1 of 3 folds failed: fold 1: the loss is (nan|inf) at epoch \d+, step"
    ):
        train_folds(data, jobs, lambda *event: None, CpuBudget(workers))
    assert jobs[0].folder.weights.exists()
    assert jobs[2].folder.weights.exists()


def test_cached_dataset_is_mapped_from_the_cache_unless_changed(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EGIN_DATA_ROOT", raising=False)
    mutag = load_tu("MUTAG")
    with mapped(mutag, tmp_path) as lent:
        assert lent.file.parent == tmp_path / "cache" / "processed"
        again = lent.open()
    assert all(torch.equal(getattr(mutag, name), getattr(again, name)) for name in TENSORS)
    assert again.info == mutag.info and again.digest == mutag.digest
    changed = mutag.with_features(node_feats=2 * mutag.node_feats)
    with mapped(changed, tmp_path) as lent:
        assert lent.file.parent == tmp_path
        assert torch.equal(lent.open().node_feats, changed.node_feats)
    assert not lent.file.exists()


def test_killed_worker_is_reported(data, make_job):
    jobs = [make_job(0, model=KillsItsProcess), make_job(1, model=EGINE)]
    with pytest.raises(TrainingError, match="a worker process died"):
        train_folds(data, jobs, lambda *event: None, CpuBudget(2))


def test_workers_exit_when_their_parent_is_killed(start, tmp_path):
    """SIGKILL of the parent of a real run."""
    parent = start(
        "dataset=bonds", "trainer.epochs=5000", "trainer.fold_workers=2", f"hydra.run.dir={tmp_path}"
    )
    try:
        wait_for(lambda: len(list(tmp_path.glob("fold_*/events*"))) >= 2, 300)
        workers = descendants(parent.pid)
        assert len(workers) >= 2
    finally:
        parent.kill()
        parent.wait()
    wait_for(lambda: not any(alive(pid) for pid in workers), 60)


def descendants(pid):
    """All descendants: workers are children of the forkserver."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = [int(child) for child in file.read().split()]
    return [*children, *(below for child in children for below in descendants(child))]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.2)


def test_scheduler_that_torch_refuses_is_one_error(run_here, tmp_path):
    for workers in (1, 2):
        with pytest.raises(ConfigError, match="^optimizer or scheduler: Factor should be < 1.0"):
            options = ("scheduler=plateau", "scheduler.factor=1", f"trainer.fold_workers={workers}")
            run_here(tmp_path / str(workers), *SMALL, *options)
