"""Run a job in a new process, for `reproducible` settings that must be in place before torch is loaded."""

import logging
import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from logging.handlers import QueueHandler, QueueListener
from typing import Any

from egin_dgl import reproducibility
from egin_dgl.errors import TrainingError
from egin_dgl.training.parallel.forkserver import spawn_context
from egin_dgl.training.parallel.signals import handle_signals
from egin_dgl.training.parallel.workers import exit_with_parent


def run_in_fresh_process(reproducible: str, function: Callable, *arguments: Any) -> Any:
    """Return or raise what `function` does in a process with this `reproducible` setting; forward its log records."""
    context = spawn_context()
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
    threading.Thread(target=exit_with_parent, daemon=True).start()
    root = logging.getLogger()
    root.addHandler(QueueHandler(records))
    root.setLevel(level)
