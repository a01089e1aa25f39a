"""Fold workers are forked from a server that has imported what they need and started nothing: no thread, no CUDA.

A process that imports torch and DGL by itself takes seconds before its first step, and hundreds of megabytes of its own.
The server is multiprocessing's; it can be started before the caller loads torch, so that both load at the same time.
"""

import multiprocessing
import os
import sys
from multiprocessing.context import BaseContext

from egin_dgl.arithmetic import THREADS

# From 3.11 on Python can be told not to look into the current folder, where anybody's egin_dgl or torch may lie.
HAS_FORKSERVER = sys.version_info >= (3, 11) and "forkserver" in multiprocessing.get_all_start_methods()


def start_forkserver() -> None:
    """Have workers ready sooner: called early, the server loads while this process does."""
    if not HAS_FORKSERVER:
        return
    from multiprocessing import forkserver

    forkserver.set_forkserver_preload(["egin_dgl.training.parallel.preload"])
    # The server finds modules where this process does, and computes as a worker: in one thread.
    own = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **THREADS}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def fold_worker_context() -> BaseContext:
    """How fold workers are started: never forked from here, as a child inherits OpenMP and CUDA state it cannot use."""
    own_default_of_joblib()
    start_forkserver()
    return multiprocessing.get_context("forkserver" if HAS_FORKSERVER else "spawn")


def spawning() -> BaseContext:
    """A process with everything anew, its environment included."""
    own_default_of_joblib()
    return multiprocessing.get_context("spawn")


def own_default_of_joblib() -> None:
    """In a job of joblib's the default way to start a process is joblib's own, which a child is told of and does not know."""
    default = multiprocessing.get_start_method(allow_none=True)
    if default not in (None, *multiprocessing.get_all_start_methods()):
        multiprocessing.set_start_method("spawn", force=True)
