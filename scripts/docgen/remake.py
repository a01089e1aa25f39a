"""Make a block again: run its commands as subprocesses; finished runs are reused, interrupted ones resumed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from omegaconf import OmegaConf

from docgen.blocks import Block, format_output
from egin_dgl.backend import installed_version
from egin_dgl.data.readers.search_path import find_raw
from egin_dgl.errors import ConfigError, EginError, TrainingError
from egin_dgl.files import write_text
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir

STATE = (
    "docs.json"  # in a block's directory: its training commands and, when all have finished, their provenance
)


def make_block(block: Block, root: Path, folder: Path, fresh: bool = False) -> tuple[str, str]:
    """Return provenance and content of a block; `fresh` deletes the runs in `folder` first."""
    provenance = train_runs(block, root, folder, fresh) if block.runs else package_versions()
    if block.show:
        command = to_arguments(block.show.replace("FOLDER", str(folder)), root)
    else:  # a finished run only prints its table
        command = with_run_dir(to_arguments(block.runs[-1], root), folder / str(len(block.runs) - 1))
    output = call(command, root, columns=block.columns)
    if block.take:
        output = (folder / block.take).read_text(encoding="utf-8")
    return provenance, format_output(output, block)


def train_runs(block: Block, root: Path, folder: Path, fresh: bool) -> str:
    """Run the commands that have not finished yet and return seed and versions.

    The runs are deleted if the commands have changed since.
    """
    path, runs = folder / STATE, list(block.runs)
    state = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if fresh or state.get("runs") != runs:
        shutil.rmtree(folder, ignore_errors=True)
        write_text(path, json.dumps({"runs": runs, "provenance": None}) + "\n")
    elif state.get("provenance"):
        return state["provenance"]
    for number, run in enumerate(runs):
        call(with_run_dir(to_arguments(run, root), folder / str(number)), root)
    provenance = f"{seeds(block, root)}, {package_versions()}"
    write_text(path, json.dumps({"runs": runs, "provenance": provenance}) + "\n")
    return provenance


def missing_data(block: Block) -> str | None:
    """Why the block cannot be made here; None if it can."""
    try:
        for name in block.needs:
            find_raw(name, url=None)
    except EginError:
        return f"{name} is missing: set EGIN_DATA_ROOT to a directory that has it"
    return None


def to_arguments(command: str, root: Path) -> list[str]:
    """A command of the register as the arguments of a process."""
    python, script, *options = shlex.split(command)
    if python != "python":
        raise ConfigError(f"a command of the register starts with python and a script, not with {python!r}")
    return [sys.executable, str(root / script), *options]


def with_run_dir(arguments: list[str], folder: Path) -> list[str]:
    """A training command that runs in `folder`, or resumes the run or sweep there."""
    if SweepDir(folder).exists or RunDir(folder).exists:
        return [*arguments[:2], f"resume={folder}"]
    return [*arguments, f"hydra.{'sweep' if '-m' in arguments else 'run'}.dir={folder}"]


def seeds(block: Block, root: Path) -> str:
    default = OmegaConf.load(root / "conf" / "train.yaml").seed
    given = [re.findall(r"(?<![\w.])seed=(\S+)", run) or [str(default)] for run in block.runs]
    return f"seed {', '.join(dict.fromkeys(seed for found in given for seed in found))}"


def package_versions() -> str:
    """Versions without a local part such as +cpu."""
    packages = ("egin-dgl", "torch", "dgl")
    return ", ".join(f"{name} {installed_version(name).partition('+')[0]}" for name in packages)


def call(arguments: list[str], root: Path, columns: int | None = None) -> str:
    """Run a command at the project root; with `columns`, return its output on a terminal of this width."""
    environment = {**os.environ, "COLUMNS": str(columns or 80)}
    output = subprocess.PIPE if columns else None
    done = subprocess.run(arguments, cwd=root, env=environment, stdout=output, text=True, encoding="utf-8")
    if done.returncode:
        raise TrainingError(
            f"{shlex.join(arguments)} failed with exit code {done.returncode}; the next call resumes it"
        )
    return done.stdout or ""
