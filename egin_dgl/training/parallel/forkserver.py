"""Fold workers are forked from multiprocessing's forkserver, which has imported torch and DGL and started no thread.

A process that imports both by itself needs seconds before its first step and hundreds of megabytes of its own. The
server can be started before the caller imports torch, so that both load at the same time.
"""

import multiprocessing
import os
import sys
from multiprocessing.context import BaseContext

from egin_dgl.reproducibility import THREADS, environment

# PYTHONSAFEPATH (3.11): the server must not import an egin_dgl or torch that lies in the current directory.
HAS_FORKSERVER = sys.version_info >= (3, 11) and "forkserver" in multiprocessing.get_all_start_methods()


def start_forkserver() -> None:
    """Start the server if it is not running yet; it imports `preload` in the background."""
    if not HAS_FORKSERVER:
        return
    from multiprocessing import forkserver

    forkserver.set_forkserver_preload(["egin_dgl.training.parallel.preload"])
    search_path = os.pathsep.join(filter(None, sys.path))
    with environment({"PYTHONSAFEPATH": "1", "PYTHONPATH": search_path, **THREADS}):
        forkserver.ensure_running()


def fold_worker_context() -> BaseContext:
    """Start method of fold workers: never a fork of this process, whose OpenMP and CUDA state a child cannot use."""
    reset_start_method()
    start_forkserver()
    return multiprocessing.get_context("forkserver" if HAS_FORKSERVER else "spawn")


def spawn_context() -> BaseContext:
    """Start method for a process with an environment of its own."""
    reset_start_method()
    return multiprocessing.get_context("spawn")


def reset_start_method() -> None:
    """Replace joblib's default start method ("loky"), which children of multiprocessing do not know."""
    default = multiprocessing.get_start_method(allow_none=True)
    if default not in (None, *multiprocessing.get_all_start_methods()):
        multiprocessing.set_start_method("spawn", force=True)
