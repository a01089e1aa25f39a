"""Attack the app, and count what held:

    python scripts/robustness.py                          all attacks
    python scripts/robustness.py inputs=2000 killed=20    these attacks, so many attempts each
    python scripts/robustness.py inputs --seed 3          others, drawn from another seed
    python scripts/robustness.py inputs --seed 3 --only 137    one attempt again

An attempt holds if it ends in the right result or one plain sentence: no traceback, no hang, no control character on the
terminal, no code called, no file written elsewhere, no connection. Exit code 1 if one fell; how to repeat it is printed.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from attacks.directories import FlippedBits, MutatedDirectories
from attacks.foreign import ForeignDirectories
from attacks.inputs import DamagedInputs
from attacks.killed import SCRIPT, SMALL, KilledRuns
from attacks.options import NonsenseOptions
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from egin_dgl.data import bonds

Attempt = Callable[[int, Random], object]  # raises an exception if the app fell


@dataclass(frozen=True)
class Attack:
    title: str
    count: int  # default number of attempts
    prepare: Callable[[Path, Path], Attempt]  # from a finished run and a directory to write to


@dataclass(frozen=True)
class Outcome:
    tried: int
    falls: dict[int, str]  # number of the attempt, and what happened


def attack_inputs(run: Path, place: Path) -> Attempt:
    attack = DamagedInputs(place)
    return lambda number, random: attack(random)


def attack_directories(run: Path, place: Path) -> Attempt:
    attack = MutatedDirectories(run, place)
    return lambda number, random: attack(random)


def attack_bits(run: Path, place: Path) -> Attempt:
    attack = FlippedBits(run, place, bonds(graphs=60))
    return lambda number, random: attack(random)


def attack_foreign(run: Path, place: Path) -> Attempt:
    attack = ForeignDirectories(run, place)
    return lambda number, random: attack(number)


def attack_options(run: Path, place: Path) -> Attempt:
    attack = NonsenseOptions(run, place)
    return lambda number, random: attack(random)


def attack_killed(run: Path, place: Path) -> Attempt:
    attack = KilledRuns(place)
    return lambda number, random: attack(random)


ATTACKS = {
    "inputs": Attack("damaged input files: CSV, SMILES, TU, zip, DGL", 300, attack_inputs),
    "directories": Attack(
        "mutated files of runs and sweeps: resume, refit, predict, table", 100, attack_directories
    ),
    "bits": Attack("flipped bits of a finished run: resume, predict", 100, attack_bits),
    "foreign": Attack("directories that name code, places and URLs", 116, attack_foreign),
    "options": Attack("nonsense on the command line", 60, attack_options),
    "killed": Attack("killed runs, resumed", 4, attack_killed),
}


def main() -> None:
    options = parse(sys.argv[1:])
    torch.set_num_threads(1)  # as folds are trained
    with tempfile.TemporaryDirectory(prefix="egin_robustness_") as place:
        run = train_run(Path(place) / "trained")
        outcomes = run_attacks(options.counts, run, Path(place), options.seed, options.only)
    console = Console(emoji=False, markup=False)
    console.print(outcome_table(outcomes))
    for name, outcome in outcomes.items():
        for number, fall in outcome.falls.items():
            console.print(
                f"python scripts/robustness.py {name} --seed {options.seed} --only {number}\n    {fall}\n"
            )
    sys.exit(any(outcome.falls for outcome in outcomes.values()))


def train_run(path: Path) -> Path:
    """A finished run for the attacks on directories."""
    more = ["model=gin", "trainer.epochs=3", "trainer.checkpoint_every=1", "trainer.fold_workers=1"]
    command = [sys.executable, str(SCRIPT), *SMALL, *more, f"hydra.run.dir={path}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def run_attacks(
    counts: dict[str, int], run: Path, place: Path, seed: int = 0, only: int | None = None
) -> dict[str, Outcome]:
    outcomes = {}
    with Progress(console=Console(stderr=True)) as progress:
        for name, count in counts.items():
            directory = place / name
            directory.mkdir()
            attempt, falls = ATTACKS[name].prepare(run, directory), {}
            numbers = range(count) if only is None else [only]
            for number in progress.track(numbers, description=name):
                try:
                    attempt(number, Random(f"{seed} {name} {number}"))
                except Exception as error:
                    falls[number] = str(error) or repr(error)
            outcomes[name] = Outcome(len(numbers), falls)
    return outcomes


def outcome_table(outcomes: dict[str, Outcome]) -> Table:
    table = Table("attack", *(("tried", "held", "fell")))
    for name, outcome in outcomes.items():
        fell = len(outcome.falls)
        table.add_row(ATTACKS[name].title, *map(str, (outcome.tried, outcome.tried - fell, fell)))
    return table


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "attacks", nargs="*", metavar="ATTACK[=COUNT]", help=f"some of {', '.join(ATTACKS)} (default: all)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="this attempt only")
    options = parser.parse_args(arguments)
    options.counts = {}
    for word in options.attacks or ATTACKS:
        name, _, count = word.partition("=")
        if name not in ATTACKS or count and not count.isdecimal():
            parser.error(f"{word!r} is none of {', '.join(ATTACKS)}, with a number after =")
        options.counts[name] = int(count) if count else ATTACKS[name].count
    return options


if __name__ == "__main__":
    main()
