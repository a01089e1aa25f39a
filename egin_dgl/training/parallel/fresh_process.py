"""A job in a process of its own, for arithmetic that this process, with torch loaded already, can no longer take up."""

import logging
import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from logging.handlers import QueueHandler, QueueListener
from typing import Any

from egin_dgl import arithmetic
from egin_dgl.errors import TrainingError
from egin_dgl.training.parallel.forkserver import spawning
from egin_dgl.training.parallel.signals import handle_signals
from egin_dgl.training.parallel.workers import end_with_parent


def in_fresh_process(reproducible: str, function: Callable, *arguments: Any) -> Any:
    """What `function` returns or raises in a process that computes as `reproducible` says; its log is ours."""
    context = spawning()
    records = context.Queue()
    root = logging.getLogger()
    listener = QueueListener(records, *root.handlers, respect_handler_level=True)
    pool = ProcessPoolExecutor(1, context, initialize, (records, root.level))
    listener.start()
    try:
        with arithmetic.for_new_processes(reproducible):
            future = pool.submit(called, function, arguments)
        return future.result()
    except BrokenProcessPool:
        raise TrainingError(
            "the run's process died (killed, or out of memory?); finished folds are kept"
        ) from None
    except KeyboardInterrupt:
        for (
            child
        ) in multiprocessing.active_children():  # it may not have been told; it ends by itself, and soon
            child.terminate()
        raise
    finally:
        pool.shutdown()
        listener.stop()


def called(function: Callable, arguments: Sequence) -> Any:
    with handle_signals():
        return function(*arguments)


def initialize(records: Any, level: int) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    root = logging.getLogger()
    root.addHandler(QueueHandler(records))
    root.setLevel(level)
