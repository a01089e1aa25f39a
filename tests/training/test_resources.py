import multiprocessing
import os
import signal
import time

import pytest
from omegaconf import OmegaConf

from egin_dgl.training.parallel.resources import core_slot, cores, cpu_budget

FORK = multiprocessing.get_context("fork")  # these children only sleep: no need to import anything anew


def hold(folder, events, seconds):
    with core_slot(folder):
        events.put((1, time.monotonic()))
        time.sleep(seconds)
        events.put((-1, time.monotonic()))


def launcher(**options):
    return OmegaConf.create(options)


def test_at_most_one_slot_per_core(tmp_path):
    events = FORK.Queue()
    processes = [FORK.Process(target=hold, args=(tmp_path, events, 0.3)) for _ in range(len(cores()) + 3)]
    for process in processes:
        process.start()
    steps = sorted((events.get(timeout=60) for _ in range(2 * len(processes))), key=lambda step: step[1])
    for process in processes:
        process.join()
    running = [sum(change for change, _ in steps[: i + 1]) for i in range(len(steps))]
    assert 1 <= max(running) <= len(cores())


def test_killed_process_releases_its_core(tmp_path):
    events = FORK.Queue()
    holders = [FORK.Process(target=hold, args=(tmp_path, events, 600)) for _ in cores()]
    for holder in holders:
        holder.start()
    for _ in holders:
        events.get(timeout=60)
    os.kill(holders[0].pid, signal.SIGKILL)
    with core_slot(tmp_path):  # would wait for ten minutes
        pass
    for holder in holders:
        holder.kill()
        holder.join()


def test_budget_by_launcher(tmp_path):
    all_cores = len(cores())
    assert cpu_budget(launcher(_target_="a.BasicLauncher"), "s").workers == all_cores
    assert cpu_budget(launcher(_target_="a.BasicLauncher"), "s").lock_dir is None
    assert cpu_budget(launcher(_target_="a.SlurmLauncher"), "s").workers == all_cores
    for jobs in (1, 2, 64, -1, None):
        joblib = cpu_budget(launcher(_target_="a.JoblibLauncher", n_jobs=jobs), "s")
        parallel = {None: 1, -1: all_cores}.get(jobs, jobs)
        assert joblib.workers * parallel <= max(all_cores, parallel)
        assert joblib.lock_dir is not None
    assert cpu_budget(launcher(_target_="a.LocalLauncher"), "s").workers == 1
    assert cpu_budget(launcher(_target_="a.LocalLauncher"), "s") == cpu_budget(
        launcher(_target_="a.LocalLauncher"), "./s"
    )
    assert cpu_budget(launcher(_target_="a.LocalLauncher"), "s") != cpu_budget(
        launcher(_target_="a.LocalLauncher"), "t"
    )


@pytest.mark.parametrize(("granted", "most"), [("1", 1), ("", None), ("999", None)])
def test_slurm_limits_the_cores(granted, most, monkeypatch):
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", granted)
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert len(cores()) == min(here, most or here)
