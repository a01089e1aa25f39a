"""Making a block again: its commands as subprocesses, with runs that are kept and gone on with."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from omegaconf import OmegaConf

from egin_dgl.backend import installed_version
from egin_dgl.data.readers.search_path import find_raw
from egin_dgl.errors import ConfigError, EginError, TrainingError
from egin_dgl.files import write_text
from egin_dgl.reporting.documents.blocks import Block, as_printed
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir

STATE = "docs.json"  # in the folder of a block: its training commands, and what they were run with once all have ended


def make_block(block: Block, root: Path, folder: Path, fresh: bool = False) -> tuple[str, str]:
    """What it was made with, and its content; `fresh` throws runs away that are in `folder` already."""
    made_with = train_runs(block, root, folder, fresh) if block.runs else versions()
    if block.show:
        shown = words_of(block.show.replace("FOLDER", str(folder)), root)
    else:  # a run that has ended prints its table and no more
        shown = in_folder(words_of(block.runs[-1], root), folder / str(len(block.runs) - 1))
    output = call(shown, root, columns=block.columns)
    if block.take:
        output = (folder / block.take).read_text(encoding="utf-8")
    return made_with, as_printed(output, block)


def train_runs(block: Block, root: Path, folder: Path, fresh: bool) -> str:
    """Run what has not ended in `folder` yet; return seed and versions. Runs of commands that have changed are thrown away."""
    path, runs = folder / STATE, list(block.runs)
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if fresh or before.get("runs") != runs:
        shutil.rmtree(folder, ignore_errors=True)
        write_text(path, json.dumps({"runs": runs, "made_with": None}) + "\n")
    elif before["made_with"]:
        return before["made_with"]
    for number, run in enumerate(runs):
        call(in_folder(words_of(run, root), folder / str(number)), root)
    made_with = f"{seeds(block, root)}, {versions()}"
    write_text(path, json.dumps({"runs": runs, "made_with": made_with}) + "\n")
    return made_with


def missing_data(block: Block) -> str | None:
    """Why the block cannot be made here, if it cannot."""
    try:
        for name in block.needs:
            find_raw(name, url=None)
    except EginError:
        return f"{name} is not here: set EGIN_DATA_ROOT to a folder that has it"
    return None


def words_of(command: str, root: Path) -> list[str]:
    """A command of the register as the words of a process."""
    python, script, *options = shlex.split(command)
    if python != "python":
        raise ConfigError(f"a command of the register begins with python and a script, not with {python!r}")
    return [sys.executable, str(root / script), *options]


def in_folder(words: list[str], folder: Path) -> list[str]:
    """A training command that runs in `folder`, or goes on with what was begun there."""
    if SweepDir(folder).exists or RunDir(folder).exists:
        return [*words[:2], f"resume={folder}"]
    return [*words, f"hydra.{'sweep' if '-m' in words else 'run'}.dir={folder}"]


def seeds(block: Block, root: Path) -> str:
    default = OmegaConf.load(root / "conf" / "train.yaml").seed
    given = [re.findall(r"(?<![\w.])seed=(\S+)", run) or [str(default)] for run in block.runs]
    return f"seed {', '.join(dict.fromkeys(seed for found in given for seed in found))}"


def versions() -> str:
    """Without what follows a plus, which tells where a package was built for, such as +cpu."""
    packages = ("egin-dgl", "torch", "dgl")
    return ", ".join(f"{name} {installed_version(name).partition('+')[0]}" for name in packages)


def call(words: list[str], root: Path, columns: int | None = None) -> str:
    """Run a command at the root of the project; with `columns`, return what it prints on a terminal so wide."""
    environment = {**os.environ, "COLUMNS": str(columns or 80)}
    output = subprocess.PIPE if columns else None
    done = subprocess.run(words, cwd=root, env=environment, stdout=output, text=True, encoding="utf-8")
    if done.returncode:
        raise TrainingError(
            f"{shlex.join(words)} ended with exit code {done.returncode}; the next call goes on from here"
        )
    return done.stdout or ""
