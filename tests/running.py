"""Ways to run the app in tests: as a command in a process of its own, or right here.

Tests take them as the fixtures of these names, which mark them as tests of trained numbers.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from hydra import compose, initialize_config_dir
from matplotlib.figure import Figure

from egin_dgl.cli.app import train
from egin_dgl.reporting.one_run import publish
from egin_dgl.runs.history_file import read_history

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "train.py"
SMALL = [
    "dataset=bonds",
    "dataset.graphs=60",
    "cv.k=3",
    "trainer.epochs=3",
    "model.num_layers=2",
    "model.hidden_dim=8",
]


seed = 0  # of what is trained; pytest --seed N


def seeded(options):
    """With the seed that was asked for, unless the options name one themselves or go on with a run that has one."""
    own = any(option.startswith(("seed=", "resume=")) for option in options)
    return options if own or seed == 0 else (*options, f"seed={seed}")


def command(*options, timeout=300, cwd=None, **environment):
    """scripts/train.py with these options, to its end."""
    return subprocess.run(
        [sys.executable, SCRIPT, *seeded(options)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def start(*options, **popen):
    """scripts/train.py with these options, left running."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, SCRIPT, *seeded(options)], **(quiet | popen))


def run_here(folder, *options):
    """The run in this process, with empty figures: to draw them takes most of a short run's time."""
    with (
        initialize_config_dir(str(ROOT / "conf"), version_base="1.3"),
        patch.object(publish, "curves_figure", lambda *_: Figure((1, 1))),
        patch.object(publish, "confusion_figure", lambda *_: Figure((1, 1))),
    ):
        return train(compose("train", ["trainer.fold_workers=1", *seeded(options)]), folder)


def same_numbers(one: Path, two: Path):
    left, right = (json.loads((folder / "summary.json").read_text()) for folder in (one, two))
    assert left["protocols"] == right["protocols"]
    for path in sorted(one.glob("fold_*/history.csv")):
        rows = [
            [record.__dict__ | {"seconds": 0} for record in read_history(folder / path.relative_to(one))]
            for folder in (one, two)
        ]
        assert repr(rows[0]) == repr(rows[1])
