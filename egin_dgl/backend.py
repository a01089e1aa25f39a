"""Import DGL quietly, or say in one sentence why it cannot be imported and what to install.

It takes seconds, so what needs no graphs does without: `import egin_dgl.with_dgl` is for what does.
"""

import importlib
import os
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from egin_dgl.arithmetic import switch_off
from egin_dgl.errors import BackendError


def installed_version(package: str) -> str:
    """The version pip knows, without importing the package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def import_dgl() -> ModuleType:
    """Import DGL with the PyTorch backend.

    Raises:
        BackendError: one sentence that names the versions found and the pip command that mends it. DGL fails in many
            ways (a missing graphbolt library is a FileNotFoundError), so every kind of error ends here.
    """
    # Without this DGL prints a notice and writes a file under the home folder at its first import.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    try:
        with warnings.catch_warnings():
            # DGL 1.1 decorates with torch.cuda.amp names that newer torch calls deprecated.
            warnings.simplefilter("ignore")
            dgl = importlib.import_module("dgl")
            switch_off()
            return dgl
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BackendError(
            f"DGL {installed_version('dgl')} cannot be imported with torch {installed_version('torch')} on Python "
            f"{sys.version_info.major}.{sys.version_info.minor} ({reason}): run `{fixing_command()}`, or install the "
            "DGL build made for your torch (https://www.dgl.ai/pages/start.html)."
        ) from error


def fixing_command() -> str:
    """The pip command that installs a pair of DGL and torch known to work with this Python."""
    if sys.version_info >= (3, 12):
        return (
            'pip install dgl==2.1.0 torch==2.2.1 torchdata==0.7.1 "numpy<2" pandas pydantic pyyaml packaging'
        )
    return 'pip install dgl==1.1.3 "torch>=2.2,<2.14" packaging'
