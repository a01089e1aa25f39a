"""Ways to run the app in tests: as a command in a process of its own, or in this process.

Tests take them as the fixtures of these names, which mark them as tests of trained numbers.
"""

import json
import os
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from attacks.directories import find_difference
from hydra import compose, initialize_config_dir
from matplotlib.figure import Figure

from egin_dgl.cli.app import train
from egin_dgl.cli.validation import make_spec, resolve_settings, validate_recorded
from egin_dgl.reporting.one_run import publish
from egin_dgl.runs.run_dir import RunDir

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
BONDS = ("dataset=bonds", "dataset.graphs=8")

seed = 0  # of all training; pytest --seed N


def seeded(options):
    """Add the seed of the test session, unless the options have one or resume a run that has one."""
    own = any(option.startswith(("seed=", "resume=", "run=")) for option in options)
    return options if own or seed == 0 else (*options, f"seed={seed}")


def command(*options, timeout=300, cwd=None, **environment):
    """Run scripts/train.py with these options to its end."""
    return subprocess.run(
        [sys.executable, SCRIPT, *seeded(options)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def start(*options, **popen):
    """Start scripts/train.py with these options."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, SCRIPT, *seeded(options)], **(quiet | popen))


def composed(*overrides):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("train", list(overrides))


def settings_of(*overrides):
    return resolve_settings(composed(*overrides))


def replaced(settings, keys, value):
    changed = deepcopy(settings)
    parent = changed
    for key in keys[:-1]:
        parent = parent[key]
    parent[keys[-1]] = value
    return changed


def run_spec(*options):
    """Return what a command with these options records in run.json."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose("train", ["trainer.fold_workers=1", *options], return_hydra_config=True)
    return replace(make_spec(cfg, cfg.hydra), overrides=list(options))


def empty_figures():
    """Context without pictures: to draw them takes most of a short run's time."""
    return patch.object(
        publish, "make_figures", lambda *_: {name: Figure((1, 1)) for name in ("curves", "confusion")}
    )


def run_here(folder, *options):
    """Train in this process."""
    with empty_figures():
        return train(run_spec(*seeded(options)), folder)


def resume_here(folder, trust=False):
    """Resume a run in this process, as `resume=DIR` does."""
    run = RunDir(folder)
    spec = validate_recorded(run.load_spec(), folder, trust)
    with empty_figures(), run.lock():
        return train(spec, folder, trust=trust)


def edit_settings(folder, change):
    """Change the settings of run.json in place, without their checksum."""
    path = RunDir(folder).run_json
    record = json.loads(path.read_text())
    change(record["settings"])
    record.pop("settings_crc32")
    path.write_text(json.dumps(record))


def same_numbers(one: Path, two: Path):
    assert find_difference(one, two) is None
