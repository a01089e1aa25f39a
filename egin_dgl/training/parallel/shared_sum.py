"""The sum over the ranks of one machine in shared memory.

gloo sends through sockets, and the thread that receives has to be woken: milliseconds of a step that takes thirty. Here every
rank writes to its row of a mapped file, waits for the others without sleeping, and adds up all rows itself.
"""

import math
import time
from collections.abc import Callable
from multiprocessing.context import BaseContext
from pathlib import Path

import torch
from torch import Tensor

SPIN_SECONDS = 0.05  # a rank that waits longer sleeps, as when the first one writes a checkpoint


class SharedSum:
    """What the ranks share; sent to a process when it is started.

    Args:
        path: the file to map; it need not exist.
        size: number of ranks.
        context: of `multiprocessing`, in which the ranks are started.
    """

    def __init__(self, path: Path, size: int, context: BaseContext):
        self.path, self.size, self.calls = path, size, 0
        self.rows: Tensor | None = None
        # Two rounds take turns in rows and semaphores: who is ahead by one does not meet who still reads the last.
        self.written = [[context.Semaphore(0) for _ in range(size)] for _ in range(2)]

    def add(self, values: Tensor, rank: int, check: Callable[[], None]) -> Tensor:
        """The sum over ranks, in place: (n,), with the same n in every call. `check` raises if a rank has ended."""
        if self.rows is None:
            shape = 2, self.size, len(values)
            flat = torch.from_file(str(self.path), shared=True, size=math.prod(shape), dtype=values.dtype)
            self.rows = flat.view(shape)
        turn, self.calls = self.calls % 2, self.calls + 1
        self.rows[turn, rank] = values
        for _ in range(self.size - 1):
            self.written[turn][rank].release()
        for other in range(self.size):
            if other != rank:
                wait(self.written[turn][other].acquire, check)
        return torch.sum(self.rows[turn], 0, out=values)


def wait(acquire: Callable[..., bool], check: Callable[[], None]) -> None:
    """Acquire a semaphore, at first without sleeping."""
    start = time.perf_counter()
    while time.perf_counter() < start + SPIN_SECONDS:
        if acquire(block=False):
            return
        time.sleep(0)  # lets another process run
    while not acquire(timeout=1.0):
        check()
