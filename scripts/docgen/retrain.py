"""Cells trained again: their digits must be those in docs/results, on every processor, as long as no default changes."""

import json
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from docgen.results import PROGRAM, REPRODUCIBLE, CellResult, hash_digits
from egin_dgl.backend import installed_version
from egin_dgl.cli.app import train_all_folds
from egin_dgl.cli.config_dirs import compose_config
from egin_dgl.cli.experiment import make_experiment
from egin_dgl.cli.splitting import make_splits
from egin_dgl.cli.validation import resolve_settings
from egin_dgl.errors import ConfigError
from egin_dgl.files import write_text
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import RunSpec
from egin_dgl.training.parallel.processes import run_in_fresh_process

# Short cells of three models and datasets; while their digits stay, those of the tables are valid.
CANARIES = (
    f"{PROGRAM} dataset=mutag model=egin_e cv=ten_fold cv.fold=0 trainer.epochs=3 reproducible=avx2",
    f"{PROGRAM} dataset=cuneiform model=egin cv=paper cv.fold=0 trainer.epochs=2 reproducible=avx2",
    f"{PROGRAM} dataset=ptc_mr model=gin cv=ten_fold cv.fold=0 trainer.epochs=2 reproducible=avx2",
)
PACKAGES = ("torch", "dgl", "numpy")


def compute_digits(commands: Sequence[str], reproducible: str = REPRODUCIBLE[0]) -> list[str]:
    """The digits of each command with this option `reproducible`, whatever the arithmetic of this process is."""
    return run_in_fresh_process(reproducible, train_commands, commands)


def train_commands(commands: Sequence[str]) -> list[str]:
    return [train_folds_of(shlex.split(command)[2:]) for command in commands]


def train_folds_of(overrides: Sequence[str]) -> str:
    """Train the folds of a command, and nothing else, in a temporary directory; return their digits."""
    settings = resolve_settings(compose_config(overrides))
    with tempfile.TemporaryDirectory() as directory:
        run = RunDir(Path(directory))
        run.register(RunSpec(settings))
        experiment = make_experiment(settings)
        _, splits = make_splits(experiment.dataset, settings, run)
        results = train_all_folds(experiment, splits, settings, run, None, is_single=False)
    return hash_digits(result.history for result in results)


def versions() -> dict[str, str]:
    return {name: installed_version(name).partition("+")[0] for name in PACKAGES}


def write_canaries(path: Path) -> None:
    digits = dict(zip(CANARIES, compute_digits(CANARIES), strict=True))
    write_text(path, json.dumps({"versions": versions(), "digits": digits}, indent=1) + "\n")


def load_canaries(path: Path) -> dict[str, str]:
    """The recorded digits by command."""
    record = json.loads(path.read_text(encoding="utf-8"))
    if record["versions"] != versions():
        raise ConfigError(f"{path} was made with {record['versions']}, and this is {versions()}")
    return record["digits"]


def find_changed(canaries: Mapping[str, str]) -> list[str]:
    """Commands that give other digits today."""
    found = compute_digits(list(canaries))
    return [command for command, digits in zip(canaries, found, strict=True) if digits != canaries[command]]


def verify_cells(cells: Iterable[CellResult], words: Sequence[str], report: Callable[[str], None]) -> int:
    """Train again every cell whose command has these words; return how many have other digits."""
    chosen = [(cell, found) for cell in cells if (found := arithmetic(cell)) and set(words) <= options(cell)]
    if not chosen:
        raise ConfigError(f"no cell in docs/results has a command with {' '.join(words)}")
    different = 0
    for cell, reproducible in chosen:
        equal = compute_digits([cell.command], reproducible) == [cell.digits]
        different += not equal
        report(f"{'equal' if equal else 'DIFFERENT'}: {cell.command}")
    return different


def options(cell: CellResult) -> set[str]:
    return set(shlex.split(cell.command))


def arithmetic(cell: CellResult) -> str | None:
    """Its option `reproducible`; None where the digits are those of one machine."""
    return next((name for name in REPRODUCIBLE if f"reproducible={name}" in options(cell)), None)
