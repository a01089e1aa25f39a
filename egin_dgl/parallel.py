"""Work on chunks of data in several processes, with results in order; by default in this process alone.

The processes import no module of the caller's script, but Python starts them by importing the script itself, so that only a
caller that allows this gets them: the app does.
"""

import multiprocessing
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

from egin_dgl.errors import DataError

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")
Shared = TypeVar("Shared")
MIN_CHUNKS = 4  # fewer are done before a process has started
AHEAD = 3  # chunks for each process that are begun before the first result is taken: memory stays bounded


@dataclass(frozen=True)
class Processes:
    """How many processes may be used, their start method, and a function that each calls first."""

    workers: int = 1
    context: Callable[[], BaseContext] = multiprocessing.get_context
    initialize: Callable[[], None] = lambda: None


_allowed: ContextVar[Processes] = ContextVar("processes", default=Processes())  # noqa: B039 (it is frozen)
_worker: dict = {}


@contextmanager
def use_processes(processes: Processes) -> Iterator[None]:
    """Allow `map_chunks` these processes inside the block."""
    token = _allowed.set(processes)
    try:
        yield
    finally:
        _allowed.reset(token)


def map_chunks(
    function: Callable[[Shared, Chunk], Result], shared: Shared, chunks: Iterable[Chunk]
) -> Iterator[Result]:
    """`function(shared, chunk)` of each chunk, in order; `shared` is sent to each process once."""
    processes, chunks = _allowed.get(), iter(chunks)
    first = list(islice(chunks, MIN_CHUNKS)) if processes.workers > 1 else []
    if len(first) < MIN_CHUNKS:
        yield from (function(shared, chunk) for chunk in chain(first, chunks))
        return
    # As bytes: tensors sent to a process go through /dev/shm, which may be small.
    arguments = processes.initialize, function, pickle.dumps(shared)
    pool = ProcessPoolExecutor(processes.workers, processes.context(), _initialize, arguments)
    pending: deque = deque()
    try:
        for chunk in chain(first, chunks):
            pending.append(pool.submit(_call, chunk))
            if len(pending) == AHEAD * processes.workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise DataError("a worker process died (killed, or out of memory?)") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _initialize(initialize: Callable[[], None], function: Callable, shared: bytes) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller handles Ctrl-C
    initialize()
    _worker.update(function=function, shared=shared)


def _call(chunk: Any) -> Any:
    if isinstance(_worker["shared"], bytes):  # not in the initializer, whose errors are lost
        _worker["shared"] = (pickle.loads(_worker["shared"]),)
    return _worker["function"](*_worker["shared"], chunk)
