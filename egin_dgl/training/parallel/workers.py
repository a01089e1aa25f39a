"""Train folds in worker processes with one thread each; the numbers do not depend on the number of workers.

Small graphs gain nothing from threads inside a step (two threads ran 10 to 100 times slower than one on a busy two-core
machine), so the cores are used by training folds in parallel.
"""

import multiprocessing
import os
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial

import torch
from threadpoolctl import threadpool_limits

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.mmap_dataset import MmapDataset, mapped
from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.history import FoldResult
from egin_dgl.parallel import Processes
from egin_dgl.reproducibility import THREADS, environment
from egin_dgl.training.job import FoldJob, OnEpoch
from egin_dgl.training.parallel.processes import HAS_FORKSERVER, exit_with_parent, fold_worker_context
from egin_dgl.training.parallel.rank_processes import train_on_ranks
from egin_dgl.training.parallel.resources import CpuBudget, core_slot
from egin_dgl.training.parallel.signals import GRACE, Interrupted, handle_signals_in_worker


def train_folds(
    dataset: GraphDataset, jobs: Sequence[FoldJob], on_epoch: OnEpoch, budget: CpuBudget
) -> list[FoldResult]:
    """Train all folds. A fold that fails does not stop the others; the error raised at the end names it."""
    workers = min(budget.workers, len(jobs)) if budget.ranks == 1 else 1
    results: list[FoldResult] = []
    failures: dict[str, list[int]] = {}  # each reason is reported once, with all folds it applies to
    with one_thread():
        if workers == 1:
            calls = [partial(run_job, dataset, job, on_epoch, budget) for job in jobs]
        else:
            calls = run_in_pool(dataset, jobs, on_epoch, budget, workers)
        for job, call in zip(jobs, calls, strict=True):
            try:
                results.append(call())
            except TrainingError as failure:
                failures.setdefault(str(failure), []).append(job.fold)
    if failures:
        reasons = "; ".join(f"fold {', '.join(map(str, folds))}: {text}" for text, folds in failures.items())
        raise TrainingError(f"{sum(map(len, failures.values()))} of {len(jobs)} folds failed: {reasons}")
    return results


def run_job(dataset: GraphDataset, job: FoldJob, on_epoch: OnEpoch, budget: CpuBudget) -> FoldResult:
    with core_slot(budget.lock_dir):
        if budget.ranks > 1:
            return train_on_ranks(dataset, job, on_epoch, budget.ranks)
        return job.train(dataset, job, on_epoch)


def run_in_pool(dataset, jobs, on_epoch, budget: CpuBudget, workers: int) -> list[partial[FoldResult]]:
    """Train all folds; return a function for each that returns its result or raises its error."""
    context = fold_worker_context()
    events = context.Queue()
    with mapped(dataset, jobs[0].folder.path.parent) as mmap_dataset:
        pool = ProcessPoolExecutor(workers, context, initialize_worker, (mmap_dataset, events, budget))
        try:
            futures = [pool.submit(train_in_worker, job) for job in jobs]
            forward_epochs(futures, events, on_epoch)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop_children()
            raise
        pool.shutdown()
    return [partial(read_result, job, future) for job, future in zip(jobs, futures, strict=True)]


def read_result(job: FoldJob, future: Future) -> FoldResult:
    try:
        future.result()
    except BrokenProcessPool:
        raise TrainingError(
            "a worker process died (killed, or out of memory?); finished folds are kept"
        ) from None
    # Read from disk: tensors sent between processes go through /dev/shm, which may be small.
    result = job.folder.progress()
    if isinstance(result, FoldResult):
        return result
    raise TrainingError(f"{job.folder.path} has no result")


def forward_epochs(futures: Sequence[Future], events, on_epoch: OnEpoch) -> None:
    """Call `on_epoch` for each epoch of the workers until all folds have ended."""
    while True:
        ended = all(future.done() for future in futures)
        try:
            while True:
                on_epoch(*events.get(timeout=0 if ended else 0.02))
        except queue.Empty:
            if ended:
                return


_worker: dict = {}


def initialize_worker(mmap_dataset: MmapDataset, events, budget: CpuBudget) -> None:
    torch.set_num_threads(1)
    handle_signals_in_worker()
    exit_with_parent()
    _worker.update(mmap_dataset=mmap_dataset, events=events, budget=budget)


def chunk_processes(workers: int) -> Processes:
    """Processes of one thread each, for `map_chunks`; none without a forkserver, as they would import from the current directory."""
    return Processes(workers if HAS_FORKSERVER else 1, fold_worker_context, initialize_chunk_worker)


def initialize_chunk_worker() -> None:
    torch.set_num_threads(1)
    exit_with_parent()


def train_in_worker(job: FoldJob) -> None:
    """Train one fold; its result is in the fold's directory afterwards."""
    if "dataset" not in _worker:  # not in the initializer, whose errors are lost
        _worker["dataset"] = _worker["mmap_dataset"].open()
    try:
        run_job(_worker["dataset"], job, lambda *event: _worker["events"].put(event), _worker["budget"])
    except Interrupted as interrupted:  # start no other fold
        os._exit(128 + interrupted.number)


def stop_children() -> None:
    """Ask all child processes to save and exit; kill those that take longer than GRACE."""
    children = multiprocessing.active_children()
    for child in children:
        child.terminate()
    deadline = time.monotonic() + GRACE + 1
    for child in children:
        child.join(max(0.0, deadline - time.monotonic()))
        if child.is_alive():
            child.kill()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread in this process and in processes started inside the block."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with environment(THREADS), threadpool_limits(1):  # pools made later read the environment
            yield
    finally:
        torch.set_num_threads(threads)
