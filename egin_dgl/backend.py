"""Imports of large libraries: DGL without its notices, or one sentence with the reason and the pip command to run.

DGL is optional: without it, graphs are edge lists (`data/edge_list.py`). Its import takes a second or more, so it is imported
when the first DGLGraph is made; the accelerated path makes none.
"""

import gc
import importlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import TYPE_CHECKING

from egin_dgl.errors import BackendError
from egin_dgl.reproducibility import disable_cpu_specific_kernels

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)


def installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@cache
def import_dgl() -> ModuleType:
    """Import DGL with the PyTorch backend.

    Raises:
        BackendError: names the versions found and the pip command that repairs them. DGL fails in many ways (a missing
            graphbolt library is a FileNotFoundError), so every exception is converted.
    """
    # Without this DGL prints a notice and writes a file under the home directory at its first import.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    try:
        with warnings.catch_warnings():
            # DGL 1.1 uses torch.cuda.amp names that newer torch deprecates.
            warnings.simplefilter("ignore")
            dgl = importlib.import_module("dgl")
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if isinstance(error, ModuleNotFoundError) and error.name == "dgl":
            raise BackendError(f"this needs DGL, which is not installed: {how_to_install()}") from None
        raise BackendError(
            f"DGL {installed_version('dgl')} cannot be imported with torch {installed_version('torch')} on Python "
            f"{sys.version_info.major}.{sys.version_info.minor} ({reason}): {how_to_install()}, or install the "
            "DGL build made for your torch (https://www.dgl.ai/pages/start.html)."
        ) from error
    disable_cpu_specific_kernels()
    return dgl


@cache
def has_dgl() -> bool:
    """Import DGL if it is installed; whether it can be used. A damaged installation is reported once."""
    try:
        import_dgl()
    except BackendError as error:
        if error.__cause__ is not None:  # it is installed
            log.warning("%s Until then models run without DGL.", error)
        return False
    return True


@cache
def why_not_dgl(device: "torch.device") -> str | None:
    """None if DGL can hold graphs on the device, else the reason."""
    if not has_dgl():
        return "DGL cannot be imported"
    dgl = import_dgl()
    try:
        dgl.graph(([0], [0])).to(device)
    except Exception as error:  # DGL raises its own error type, which differs between versions
        return f"DGL {dgl.__version__} cannot use it ({str(error).splitlines()[-1]})"
    return None


def how_to_install() -> str:
    if sys.version_info >= (3, 13):
        return (
            f"it has no build for Python {sys.version_info.major}.{sys.version_info.minor}; use Python 3.11"
        )
    if sys.version_info >= (3, 12):
        packages = 'dgl==2.1.0 torch==2.2.1 torchdata==0.7.1 "numpy<2" pandas pydantic pyyaml packaging'
    else:
        packages = 'dgl==1.1.3 "torch>=2.2,<2.14" packaging'
    return f"run `pip install {packages}`"


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Import modules inside the block without garbage collection, which takes a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def import_in_background(*modules: str) -> None:
    """Import modules in a thread, while this process waits for its workers."""

    def load() -> None:
        with suppress(Exception), gc_disabled():  # a later import in the main thread reports the error
            for module in modules:
                importlib.import_module(module)

    threading.Thread(target=load, daemon=True).start()
