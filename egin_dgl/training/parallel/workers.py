"""Folds in worker processes, one thread each: the same numbers for any number of workers.

Small graphs do not profit from threads inside a step (two threads ran 10 to 100 times slower than one on a busy
two-core machine), so the cores are used by training folds side by side.
"""

import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

from egin_dgl.arithmetic import THREADS
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.mmap_dataset import MmapDataset, mapped
from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.training.job import FoldJob, OnEpoch
from egin_dgl.training.parallel.forkserver import fold_worker_context
from egin_dgl.training.parallel.memory import keep_freed_memory
from egin_dgl.training.parallel.resources import CpuBudget, core_slot
from egin_dgl.training.parallel.signals import GRACE, Interrupted, handle_signals_in_worker


def train_folds(
    dataset: GraphDataset, jobs: Sequence[FoldJob], on_epoch: OnEpoch, share: CpuBudget
) -> list[FoldResult]:
    """Train all folds. A fold that fails does not stop the others; it is named in the error raised at the end."""
    workers = min(share.workers, len(jobs))
    with one_thread():
        if workers == 1:
            outcomes = in_this_process(dataset, jobs, on_epoch, share)
        else:
            outcomes = in_pool(dataset, jobs, on_epoch, share, workers)
    failed: dict[str, list[int]] = {}  # a reason is told once, with all the folds it is of
    for job, outcome in zip(jobs, outcomes, strict=True):
        if isinstance(outcome, TrainingError):
            failed.setdefault(str(outcome), []).append(job.fold)
    if failed:
        reasons = "; ".join(f"fold {', '.join(map(str, folds))}: {text}" for text, folds in failed.items())
        raise TrainingError(f"{sum(map(len, failed.values()))} of {len(jobs)} folds failed: {reasons}")
    return [outcome for outcome in outcomes if not isinstance(outcome, TrainingError)]


def in_this_process(dataset, jobs, on_epoch, share: CpuBudget) -> list[FoldResult | TrainingError]:
    outcomes: list[FoldResult | TrainingError] = []
    for job in jobs:
        try:
            with core_slot(share.turns):
                outcomes.append(job.train(dataset, job, on_epoch))
        except TrainingError as failure:
            outcomes.append(failure)
    return outcomes


def in_pool(dataset, jobs, on_epoch, share: CpuBudget, workers: int) -> list[FoldResult | TrainingError]:
    context = fold_worker_context()
    events = context.Queue()
    with mapped(dataset, jobs[0].folder.path.parent) as lent:
        pool = ProcessPoolExecutor(workers, context, initialize_worker, (lent, events, share))
        try:
            futures = [pool.submit(train_in_worker, job) for job in jobs]
            follow(futures, events, on_epoch)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            end_children()
            raise
        pool.shutdown()
    return [outcome_of(job, future) for job, future in zip(jobs, futures, strict=True)]


def outcome_of(job: FoldJob, future: Future) -> FoldResult | TrainingError:
    """What a fold came to, its own failure included; any other is the run's."""
    try:
        future.result()
        # Read where the worker left it: tensors sent from process to process go through /dev/shm, which may be small.
        result = job.folder.progress()
        return result if isinstance(result, FoldResult) else TrainingError(f"{job.folder.path} has no result")
    except TrainingError as failure:
        return failure
    except BrokenProcessPool:
        raise TrainingError(
            "a worker process died (killed, or out of memory?); finished folds are kept"
        ) from None


def follow(futures: Sequence[Future], events, on_epoch: OnEpoch) -> None:
    """Pass the workers' epochs on to `on_epoch` until all folds have ended."""
    while True:
        ended = all(future.done() for future in futures)
        try:
            while True:
                on_epoch(*events.get(timeout=0 if ended else 0.02))
        except queue.Empty:
            if ended:
                return


_worker: dict = {}


def initialize_worker(dataset: MmapDataset, events, share: CpuBudget) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    handle_signals_in_worker()
    threading.Thread(target=end_with_parent, daemon=True).start()
    _worker.update(lent=dataset, events=events, share=share)


def end_children() -> None:
    """All processes that this one started: asked to save what they have, and killed where that takes too long."""
    children = multiprocessing.active_children()
    for child in children:
        child.terminate()
    deadline = time.monotonic() + GRACE + 1
    for child in children:
        child.join(max(0.0, deadline - time.monotonic()))
        if child.is_alive():
            child.kill()


def end_with_parent() -> None:
    """A worker whose parent was killed would train on, or wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:  # it is a worker's own thread that waits here
        parent.join()
        os._exit(1)


def train_in_worker(job: FoldJob) -> None:
    """The result is in the fold's folder afterwards."""
    if "dataset" not in _worker:  # here, as an error of an initializer is not told
        _worker["dataset"] = _worker["lent"].open()
    try:
        with core_slot(_worker["share"].turns):
            job.train(_worker["dataset"], job, lambda *event: _worker["events"].put(event))
    except Interrupted as asked:  # no other fold begins here
        os._exit(128 + asked.number)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread here, in pools that were made before too, and in the processes started meanwhile."""
    before = {name: os.environ.get(name) for name in THREADS}
    threads = torch.get_num_threads()
    os.environ.update(THREADS)  # which pools of DGL and BLAS read when they are made
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
