"""CPU cores, shared by the folds of a run and by the runs of a sweep.

One fold trains per core. If a launcher runs several jobs at once, each job has fewer fold workers, and the folds of all
jobs on the machine take a `core_slot` in turn: no more folds compute at a time than there are cores.
"""

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from egin_dgl.files import storage_errors

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class CpuBudget:
    """Fold workers of a job, the directory of lock files that concurrent jobs share, and the ranks that train each fold."""

    workers: int
    lock_dir: Path | None = None
    ranks: int = 1  # of more than one, folds are trained one after another


def cores() -> list[int]:
    """Numbers of the cores that this process may use; under SLURM at most the CPUs of the task."""
    if hasattr(os, "sched_getaffinity"):
        found = sorted(os.sched_getaffinity(0))
    else:
        found = list(range(os.cpu_count() or 1))
    granted = os.environ.get("SLURM_CPUS_PER_TASK", "")
    return found[: int(granted) if granted.isdigit() and int(granted) else None]


def cpu_budget(launcher: Mapping, sweep_dir: str) -> CpuBudget:
    """Budget of one job under a Hydra launcher (its configuration), in the sweep that writes to `sweep_dir`."""
    available = len(cores())
    plugin = launcher["_target_"].rpartition(".")[2]
    if plugin in ("BasicLauncher", "SlurmLauncher"):  # one job after another, or each on its own cores
        return CpuBudget(available)
    jobs = available  # of an unknown launcher: assume as many jobs as cores, or more
    if plugin == "JoblibLauncher":
        jobs = launcher["n_jobs"] or 1
        jobs = jobs if jobs > 0 else max(1, available + 1 + jobs)  # joblib: -1 is all cores
    name = hashlib.sha256(os.path.abspath(sweep_dir).encode()).hexdigest()[:16]
    owner = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return CpuBudget(max(1, available // jobs), Path(tempfile.gettempdir()) / f"egin_dgl-{owner}" / name)


@contextmanager
def core_slot(lock_dir: Path | None) -> Iterator[None]:
    """Hold the lock of one core, waiting for a free one. A process that dies releases its lock."""
    if lock_dir is None:
        yield
        return
    with storage_errors(lock_dir):
        lock_dir.mkdir(parents=True, exist_ok=True)
    locks = [FileLock(lock_dir / f"core_{core}.lock") for core in cores()]
    while (held := next(filter(try_acquire, locks), None)) is None:
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        held.release()


def try_acquire(lock: FileLock) -> bool:
    try:
        with storage_errors(lock.lock_file):
            lock.acquire(timeout=0)
    except Timeout:
        return False
    return True
