"""The cores of the machine, shared by the folds of a run and by the runs of a sweep.

Folds train one to a core. Where a launcher runs several jobs side by side, each job has fewer fold workers, and folds of
all jobs on the machine take turns on its cores: however many jobs were started, no more folds compute than there are cores.
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

PATIENCE = 0.1  # seconds between two looks for a free core


@dataclass(frozen=True)
class CpuBudget:
    """What a job may use: fold workers of its own, and a folder where jobs side by side take their turns."""

    workers: int
    turns: Path | None = None


def cores() -> list[int]:
    """The numbers of the cores that this process may use; under SLURM no more than the task was given."""
    found = (
        sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    )
    granted = os.environ.get("SLURM_CPUS_PER_TASK", "")
    return list(found)[: int(granted) if granted.isdigit() and int(granted) else None]


def cpu_budget(launcher: Mapping, sweep: str) -> CpuBudget:
    """A job's share under a Hydra launcher (its configuration) in the sweep that writes to the folder `sweep`."""
    available = len(cores())
    plugin = launcher["_target_"].rpartition(".")[2]
    if plugin in ("BasicLauncher", "SlurmLauncher"):  # one after the other, or each on cores of its own
        return CpuBudget(available)
    jobs = available  # as many as there are, or more: one fold worker each
    if plugin == "JoblibLauncher":
        jobs = launcher["n_jobs"] or 1
        jobs = (
            jobs if jobs > 0 else max(1, available + 1 + jobs)
        )  # joblib counts from the end: -1 is all cores
    name = hashlib.sha256(os.path.abspath(sweep).encode()).hexdigest()[:16]
    owner = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return CpuBudget(max(1, available // jobs), Path(tempfile.gettempdir()) / f"egin_dgl-{owner}" / name)


@contextmanager
def core_slot(folder: Path | None) -> Iterator[None]:
    """Wait for a core that no other holder of a turn in `folder` is on. A process that dies gives its core back."""
    if folder is None:
        yield
        return
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    locks = [FileLock(folder / f"core_{core}.lock") for core in cores()]
    while (held := next(filter(acquired, locks), None)) is None:
        time.sleep(PATIENCE)
    try:
        yield
    finally:
        held.release()


def acquired(lock: FileLock) -> bool:
    try:
        with storage_errors(lock.lock_file):
            lock.acquire(timeout=0)
    except Timeout:
        return False
    return True
