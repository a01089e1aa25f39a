"""Command-line arguments of `egin train`: which are for Hydra, and which name a run or sweep to continue."""

import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from egin_dgl.cli.config_dirs import conf_dir, split_config_dir
from egin_dgl.errors import ConfigError
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir

ALIASES = {"hydra/sweeper=optuna": "hydra/sweeper=search"}  # with the defaults of conf/hydra/sweeper
TRUST = "trust=true"
DRY_RUN = "dry_run=true"
LAUNCHER = ("hydra/launcher=", "hydra.launcher.", "+hydra.launcher.", "++hydra.launcher.")
RANKS = "trainer.ranks"  # a run may be continued by another number of processes
REFIT = ("cv=refit", "device=", "hydra.run.dir=")


@dataclass(frozen=True)
class TrainArguments:
    resume: Path | None  # directory of a run or sweep to resume
    run: Path | None  # directory of a run to refit on all graphs
    trust: bool  # allow the directory to name classes that are not of egin_dgl or torch
    config_dir: Path | None  # directory with configuration and code of the user
    overrides: list[str]  # all other arguments
    ranks: str | None = None  # for the directory to resume or refit
    dry_run: bool = False  # of what is resumed; else Hydra composes it like other options


def parse_arguments(arguments: Sequence[str]) -> TrainArguments:
    config_dir, others = split_config_dir(arguments)
    resume, run = (find_directory(others, option) for option in ("resume", "run"))
    overrides = [word for word in others if not word.startswith(("resume=", "run=")) and word != TRUST]
    trust, ranks, dry_run = TRUST in others, None, DRY_RUN in map(str.lower, others)
    if resume is not None:
        overrides = [word for word in overrides if word.lower() != DRY_RUN]
    if resume is not None or run is not None:
        ranks = last_value(others, RANKS)
        overrides = [word for word in overrides if not word.startswith(f"{RANKS}=")]
    if resume is None and run is None and trust:
        raise ConfigError(f"{TRUST} needs resume=DIR or run=DIR, the directory that is trusted")
    if resume is not None and (wrong := [word for word in overrides if not word.startswith(LAUNCHER)]):
        raise ConfigError(
            f"resume=DIR takes all options from the directory: leave out {' '.join(wrong)}; only {TRUST}, {DRY_RUN}, "
            f"--config-dir, {RANKS} and, for a sweep, a launcher can be given with it"
        )
    if run is not None and "cv=refit" not in overrides:
        raise ConfigError("run=DIR is for cv=refit, which trains one model with the settings of that run")
    if run is not None and (wrong := [word for word in overrides if not word.startswith(REFIT)]):
        raise ConfigError(f"cv=refit takes its options from run=DIR: leave out {' '.join(wrong)}")
    if any("\ud800" <= character <= "\udfff" for character in str(resume or run)):
        raise ConfigError("the name of the directory is not UTF-8, which TensorBoard needs: rename it")
    return TrainArguments(resume, run, trust, config_dir, overrides, ranks, dry_run)


def find_directory(arguments: Sequence[str], option: str) -> Path | None:
    value = last_value(arguments, option)
    return None if value in (None, "null") else Path(value)


def last_value(arguments: Sequence[str], option: str) -> str | None:
    """Return the value of the last ``option=VALUE``."""
    found = [word.partition("=")[2] for word in arguments if word.startswith(f"{option}=")]
    return found[-1] if found else None


def hydra_arguments(arguments: TrainArguments) -> list[str]:
    """Return the arguments for Hydra, which takes no flag between overrides."""
    flag = ["--config-dir", str(arguments.config_dir)] if arguments.config_dir else []
    overrides = [ALIASES.get(word, word) for word in arguments.overrides]
    return [*flag, *overrides, *continue_search(arguments)]


def continue_search(arguments: TrainArguments) -> list[str]:
    """Return the overrides with which a search in an existing hydra.sweep.dir runs its remaining trials."""
    path = last_value(arguments.overrides, "hydra.sweep.dir")
    sweep = SweepDir(Path(path or "."))
    if path is None or not sweep.exists or (trials := sweep.load().trials) is None:
        return []
    typed = last_value(arguments.overrides, "hydra.sweeper.n_trials") or ""
    trials, finished = int(typed) if typed.isdecimal() else trials, sweep.count_finished()
    name = "${hydra.job.num}_${hydra.runtime.choices.model}_${hydra.runtime.choices.dataset}"
    return [f"hydra.sweeper.n_trials={max(0, trials - finished)}", f"hydra.sweep.subdir='{finished}+{name}'"]


def requested_arithmetic(arguments: Sequence[str]) -> str | None:
    """Return `reproducible` as the command, its experiment or the directory it continues has it, without importing torch.

    A sweep then starts in this arithmetic, instead of every job in a process of its own.
    """
    path = find_directory(arguments, "resume") or find_directory(arguments, "run")
    if path is None:
        experiment = conf_dir() / "experiment" / f"{last_value(arguments, 'experiment')}.yaml"
        # os.path.isfile is False for a name that is too long, where Path.is_file raises an error.
        is_shipped = os.path.isfile(experiment)
        shipped = yaml.safe_load(experiment.read_bytes()).get("reproducible") if is_shipped else None
        return last_value(arguments, "reproducible") or shipped
    file = SweepDir(path).sweep_json if SweepDir(path).exists else RunDir(path).run_json
    try:
        content = json.loads(file.read_bytes())
        found = {record["settings"]["reproducible"] for record in content.get("jobs", [content])}
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None  # what is wrong is reported when the settings are loaded
    return found.pop() if len(found) == 1 else None


def resume_arguments(directory: str | Path) -> str:
    """Return the arguments that resume a run or sweep, quoted for a shell."""
    config_dir, _ = split_config_dir(sys.argv[1:])
    path = os.path.relpath(directory)
    sweep = SweepDir(Path(directory))
    if sweep.exists and sweep.load().is_search:
        return f"the same command with {shlex.quote(f'hydra.sweep.dir={path}')}"
    own = ["--config-dir", os.path.relpath(config_dir), TRUST] if config_dir else []
    return shlex.join([f"resume={path}", *own])
