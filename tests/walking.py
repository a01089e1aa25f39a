"""Follow a page of the documents: run its programs and commands in their order, in one directory."""

import re
import runpy
import shlex
import shutil
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from running import ROOT

from egin_dgl.cli.refit import plan_refit, train_refit
from egin_dgl.runs.run_dir import RunDir

QUICK = ["trainer.epochs=1", "model.num_layers=2", "model.hidden_dim=8"]


def blocks(page):
    """The code blocks of a page: (language, text)."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def follow(page, folder, run_here, quick=(*QUICK, "cv.fold=0")):
    """Run a page in `folder`, the current directory, training with `quick` options.

    Returns the number of commands, and what those that do not train printed.
    """
    shutil.copytree(ROOT / "examples", folder / "examples")
    names, commands, printed = {}, 0, ""
    for language, text in blocks(page):
        if language == "python":
            exec(text, names)
            continue
        for line in text.splitlines():
            command = re.match(r"(?:python scripts/(\w+)\.py|egin (\w+)) ", line)
            if not command:
                continue
            commands += 1
            script = command[1] or command[2]
            arguments = shlex.split(line, comments=True)[2:]
            if script == "train":
                train(folder, commands, arguments, run_here, quick)
            else:
                printed += call(script, arguments)
    return commands, printed


def call(script, arguments):
    """The output of a script in this process."""
    path, output = str(ROOT / "scripts" / f"{script}.py"), StringIO()
    with patch.object(sys, "argv", [path, *arguments]), redirect_stdout(output):
        runpy.run_path(path, run_name="__main__")
    return output.getvalue()


def train(folder, number, arguments, run_here, quick):
    """Train in the directory of the command, or in a numbered one."""
    place = [text.removeprefix("hydra.run.dir=") for text in arguments if text.startswith("hydra.run.dir=")]
    options = [text for text in arguments if not text.startswith("hydra.")]
    finished = [text.removeprefix("run=") for text in arguments if text.startswith("run=")]
    if finished:  # cv=refit takes the settings of a run and trains in its directory
        run = folder / finished[0]
        train_refit(plan_refit(RunDir(run)), run / "refit")
        return
    if any("_forest" in text for text in arguments):  # it has no layers
        quick = [text for text in quick if not text.startswith("model.")]
    summary = run_here(folder / Path(place[0] if place else str(number)), *options, *quick)
    assert summary["folds"] >= 1
