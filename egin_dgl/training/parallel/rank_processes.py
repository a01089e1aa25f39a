"""Processes of ranks: started here on one machine, or by torchrun on one or several.

The first rank runs the app. The others wait for a fold, train their share of it and write nothing.
"""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from threadpoolctl import threadpool_limits

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.mmap_dataset import MmapDataset, mapped
from egin_dgl.errors import TrainingError, one_line
from egin_dgl.evaluation.history import FoldResult
from egin_dgl.reproducibility import environment
from egin_dgl.training.job import FoldJob, OnEpoch
from egin_dgl.training.parallel.processes import exit_with_parent, fold_worker_context
from egin_dgl.training.parallel.ranks import LostRank, Ranks, lost_ranks
from egin_dgl.training.parallel.shared_sum import SharedSum
from egin_dgl.training.parallel.signals import Interrupted, handle_signals_in_worker

TIMEOUT = timedelta(minutes=30)  # for a rank that does not answer; one that has ended is noticed at once
FOLD_TIMEOUT = timedelta(days=7)  # for the next fold: the first rank may read data for hours
EXIT_SECONDS = 10.0
# On one machine ranks talk through the loopback interface, which no other machine reaches.
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
READY = ""  # sent by a rank that is about to join the others; anything else is the reason why it ended


def train_on_ranks(dataset: GraphDataset, job: FoldJob, on_epoch: OnEpoch, size: int) -> FoldResult:
    """Train one fold on this rank, the first, and on the others."""
    with mapped(dataset, job.folder.path.parent) as mmap_dataset:
        if _torchrun is not None:
            _torchrun.send(mmap_dataset, job)
            return job.train(dataset, job_of_rank(job, Ranks(0, size), _torchrun.local_rank), on_epoch)
        with tempfile.TemporaryDirectory() as directory:
            store = Path(directory) / "store"
            shared = SharedSum(Path(directory) / "gradients", size, fold_worker_context())
            followers = [
                start_follower(mmap_dataset, job_of_rank(job, Ranks(rank, size, shared), rank), store)
                for rank in range(1, size)
            ]

            def check() -> None:
                if not all(follower.process.is_alive() for follower in followers):
                    raise LostRank

            try:
                for follower in followers:
                    follower.wait_until_ready()
                first = job_of_rank(job, Ranks(0, size, shared, check), 0)
                with process_group(first.ranks, store):
                    result = job.train(dataset, first, on_epoch)
                for follower in followers:
                    follower.process.join(EXIT_SECONDS)
                return result
            except LostRank as error:
                raise TrainingError(describe_loss(followers, size)) from error
            finally:
                for follower in followers:
                    follower.process.kill()


def job_of_rank(job: FoldJob, ranks: Ranks, local_rank: int) -> FoldJob:
    """The job of one rank, on a GPU of its own where folds train on GPUs."""
    device = torch.device("cuda", local_rank) if job.device.type == "cuda" else job.device
    return replace(job, device=device, ranks=ranks)


@contextmanager
def process_group(ranks: Ranks | None = None, store: Path | None = None) -> Iterator[None]:
    """The default group of `torch.distributed`: of these ranks, which meet in a file, or as the variables of torchrun say."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    where: dict[str, Any] = {}
    if ranks and store:
        where = {
            "rank": ranks.rank,
            "world_size": ranks.size,
            "store": dist.FileStore(str(store), ranks.size),
        }
    with environment(LOOPBACK if store else {}), lost_ranks():
        dist.init_process_group(backend, timeout=TIMEOUT, **where)
    try:
        yield
    finally:
        with suppress(RuntimeError):  # another rank has ended
            dist.destroy_process_group()


@dataclass(frozen=True)
class Follower:
    """A rank of this machine other than the first."""

    rank: int
    process: BaseProcess
    messages: Connection

    def wait_until_ready(self) -> None:
        if reason := self.read():
            raise LostRank(reason)

    def read(self) -> str:
        """The next message; the end of the process is one as well."""
        try:
            return self.messages.recv()
        except EOFError:
            return "killed, or out of memory?"


def start_follower(dataset: MmapDataset, job: FoldJob, store: Path) -> Follower:
    context = fold_worker_context()
    messages, theirs = context.Pipe(duplex=False)
    process = context.Process(target=follow_locally, args=(dataset, job, store, theirs), daemon=True)  # type: ignore[attr-defined]
    process.start()
    theirs.close()  # so that the end of the process ends the messages
    return Follower(job.ranks.rank, process, messages)


def describe_loss(followers: list[Follower], size: int) -> str:
    """The sentence about the first rank that ended."""
    for follower in followers:
        follower.process.join(EXIT_SECONDS / len(followers))
        if not follower.process.is_alive():
            return f"rank {follower.rank} of {size} ended ({follower.read()}); the last checkpoint is kept"
    return f"a rank of {size} does not answer; the last checkpoint is kept"


def follow_locally(dataset: MmapDataset, job: FoldJob, store: Path, messages: Connection) -> None:
    """The process of a rank that `train_on_ranks` started."""
    torch.set_num_threads(1)
    handle_signals_in_worker()
    exit_with_parent()
    try:
        graphs = dataset.open()
        messages.send(READY)
        with process_group(job.ranks, store):
            job.train(graphs, job, ignore_epoch)
    except (LostRank, Interrupted):  # which the first rank reports
        os._exit(1)
    except Exception as error:
        messages.send(one_line(error))
        os._exit(1)


def ignore_epoch(*event: object) -> None:
    """Epochs are reported by the first rank."""


class TorchrunRanks:
    """The ranks that torchrun started, as seen by one of them."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.local_rank = int(os.environ.get("LOCAL_RANK", self.rank))
        # Folds are sent in a group of their own, which waits longer than a step may take.
        self.group = dist.new_group(backend="gloo", timeout=FOLD_TIMEOUT)

    def send(self, *fold: object) -> None:
        """Send a fold to the other ranks; without one they end."""
        with lost_ranks():
            dist.broadcast_object_list([fold], src=0, group=self.group)

    def follow(self) -> None:
        """Train this rank's share of every fold that the first rank sends."""
        torch.set_num_threads(1)
        handle_signals_in_worker()
        with threadpool_limits(1):
            while fold := self.receive():
                dataset, job = fold
                own = job_of_rank(job, Ranks(self.rank, self.size), self.local_rank)
                try:
                    job.train(dataset.open(), own, ignore_epoch)
                except LostRank:
                    raise
                except TrainingError:
                    pass  # of all ranks, such as a loss that diverges: the first reports it and may send another fold

    def receive(self) -> tuple:
        box: list[Any] = [None]
        with lost_ranks():
            dist.broadcast_object_list(box, src=0, group=self.group)
        return box[0]


_torchrun: TorchrunRanks | None = None


def torchrun_size() -> int | None:
    """The number of ranks that torchrun started; None if it did not start this process."""
    return None if _torchrun is None else _torchrun.size


@contextmanager
def join_torchrun() -> Iterator[bool]:
    """Join the ranks that torchrun started. Yields True on the first, which runs the app, and False on others at their end."""
    global _torchrun
    with process_group():
        _torchrun = TorchrunRanks()
        try:
            if _torchrun.rank == 0:
                yield True
                _torchrun.send()  # not after an error: torchrun ends the others
            else:
                with exiting_quietly():
                    _torchrun.follow()
                yield False
        finally:
            _torchrun = None


@contextmanager
def exiting_quietly() -> Iterator[None]:
    """Exit where another rank has ended or a signal has arrived, which the first rank reports."""
    try:
        yield
    except LostRank:
        # torchrun ends all ranks as soon as one has ended; the first rank may still have an error to print.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(EXIT_SECONDS)
        os._exit(1)
    except Interrupted:
        os._exit(1)
