"""The package as a user has it: built as a wheel, installed into a folder of its own, far from the repository."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from running import ROOT

SOURCES = ("egin_dgl", "conf", "pyproject.toml", "setup.py", "README.md", "LICENSE")


def pip(*words):
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def build_wheel(folder: Path) -> Path:
    """Of a copy, as building leaves files behind."""
    sources = folder / "sources"
    sources.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, sources)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, sources)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Installed:
    """The command `egin` of a wheel, called in a folder with nothing in it."""

    site: Path  # where the wheel was installed to
    folder: Path

    def __call__(self, *words, before=(), **environment):
        """`before` are folders where Python looks first."""
        paths = os.pathsep.join(map(str, (*before, self.site)))
        return subprocess.run(
            [self.site / "bin" / "egin", *words],
            cwd=self.folder,
            env={**os.environ, **environment, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=300,
        )


def install(wheel: Path, folder: Path) -> Installed:
    pip("install", "--no-deps", "--target", folder / "site", wheel)
    (folder / "elsewhere").mkdir()
    return Installed(folder / "site", folder / "elsewhere")
