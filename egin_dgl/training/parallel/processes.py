"""How processes are started: fold workers from a forkserver, a job with a `reproducible` setting in a new process.

The forkserver has imported torch and started no thread. A process that imports it by itself needs seconds before its first
step and hundreds of megabytes of its own. The server can be started before the caller imports torch, so that both load at the
same time; so this module does not import it.
"""

import logging
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from logging.handlers import QueueHandler, QueueListener
from multiprocessing.context import BaseContext
from typing import Any

from egin_dgl import reproducibility
from egin_dgl.errors import TrainingError
from egin_dgl.training.parallel.signals import handle_signals

# PYTHONSAFEPATH (3.11): the server must not import an egin_dgl or torch that lies in the current directory.
HAS_FORKSERVER = sys.version_info >= (3, 11) and "forkserver" in multiprocessing.get_all_start_methods()

TORCHRUN = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}  # variables of its processes


def started_by_torchrun() -> bool:
    """Whether torchrun started this process as one of several ranks."""
    return os.environ.keys() >= TORCHRUN and os.environ["WORLD_SIZE"] != "1"


def start_forkserver() -> None:
    """Start the server if it is not running yet; it imports `preload` in the background."""
    if not HAS_FORKSERVER:
        return
    from multiprocessing import forkserver

    forkserver.set_forkserver_preload(["egin_dgl.training.parallel.preload"])
    search_path = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with reproducibility.environment(search_path | reproducibility.THREADS):
        forkserver.ensure_running()


def fold_worker_context() -> BaseContext:
    """Start method of fold workers: never a fork of this process, whose OpenMP and CUDA state a child cannot use."""
    context = process_context("forkserver" if HAS_FORKSERVER else "spawn")
    start_forkserver()
    return context


def process_context(method: str) -> BaseContext:
    """A start method, after replacing joblib's default ("loky"), which children of multiprocessing do not know."""
    default = multiprocessing.get_start_method(allow_none=True)
    if default not in (None, *multiprocessing.get_all_start_methods()):
        multiprocessing.set_start_method("spawn", force=True)
    return multiprocessing.get_context(method)


def run_in_fresh_process(reproducible: str, function: Callable, *arguments: Any) -> Any:
    """Return or raise what `function` does in a process with this `reproducible` setting; forward its log records.

    The setting must be in place before torch is loaded.
    """
    context = process_context("spawn")
    records = context.Queue()
    root = logging.getLogger()
    listener = QueueListener(records, *root.handlers, respect_handler_level=True)
    pool = ProcessPoolExecutor(1, context, initialize, (records, root.level))
    listener.start()
    try:
        with reproducibility.environment(reproducibility.flags(reproducible)):
            future = pool.submit(call_handling_signals, function, arguments)
        return future.result()
    except BrokenProcessPool:
        raise TrainingError(
            "the run's process died (killed, or out of memory?); finished folds are kept"
        ) from None
    except KeyboardInterrupt:
        for child in multiprocessing.active_children():  # the signal may have reached this process alone
            child.terminate()
        raise
    finally:
        pool.shutdown()
        listener.stop()


def call_handling_signals(function: Callable, arguments: Sequence) -> Any:
    with handle_signals():
        return function(*arguments)


def initialize(records: Any, level: int) -> None:
    exit_with_parent()
    root = logging.getLogger()
    root.addHandler(QueueHandler(records))
    root.setLevel(level)


def exit_with_parent() -> None:
    """In a child process: start a thread that exits the process when the parent has died."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
