"""A page of the documents followed as a reader would: its programs and commands, in their order, in one folder."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from running import ROOT

QUICK = ["trainer.epochs=1", "model.num_layers=2", "model.hidden_dim=8"]


def blocks(page):
    """The pieces of code of a page in their order: (language, text)."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def follow(page, folder, run_here, quick=(*QUICK, "cv.fold=0")):
    """Run all of it, what trains with `quick` options; how many commands there were, and what they printed."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    names, commands, printed = {}, 0, ""
    for language, text in blocks(page):
        if language == "python":
            exec(text, names)
            continue
        for line in text.splitlines():
            if not line.startswith("python scripts/"):
                continue
            commands += 1
            _, script, *words = shlex.split(line, comments=True)
            if script.endswith("train.py"):
                train(folder, commands, words, run_here, quick)
                continue
            done = subprocess.run(
                [sys.executable, ROOT / script, *words],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, done.stderr
            printed += done.stdout
    return commands, printed


def train(folder, number, words, run_here, quick):
    """In the folder that the words name, or one of its own."""
    place = [word.removeprefix("hydra.run.dir=") for word in words if word.startswith("hydra.run.dir=")]
    options = [word for word in words if not word.startswith("hydra.")]
    before = [word.removeprefix("run=") for word in words if word.startswith("run=")]
    if before:  # a model on all graphs takes the settings of a run, and lies in its folder
        run_here(folder / before[0] / "refit", *options)
        return
    summary = run_here(folder / Path(place[0] if place else str(number)), *options, *quick)
    assert summary["folds"] >= 1
