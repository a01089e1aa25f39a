"""Imports of large libraries: DGL without its notices, or one sentence with the reason and the pip command to run.

The import takes seconds: only modules that need graphs `import egin_dgl.with_dgl`.
"""

import gc
import importlib
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from egin_dgl.errors import BackendError
from egin_dgl.reproducibility import disable_cpu_specific_kernels


def installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


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
            disable_cpu_specific_kernels()
            return dgl
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BackendError(
            f"DGL {installed_version('dgl')} cannot be imported with torch {installed_version('torch')} on Python "
            f"{sys.version_info.major}.{sys.version_info.minor} ({reason}): run `{fixing_command()}`, or install the "
            "DGL build made for your torch (https://www.dgl.ai/pages/start.html)."
        ) from error


def fixing_command() -> str:
    if sys.version_info >= (3, 12):
        return (
            'pip install dgl==2.1.0 torch==2.2.1 torchdata==0.7.1 "numpy<2" pandas pydantic pyyaml packaging'
        )
    return 'pip install dgl==1.1.3 "torch>=2.2,<2.14" packaging'


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
