"""Molecules: our networks and forests beside chemprop, on the same split files.

    python scripts/benchmark.py molecules run [--only REGEX] [--chemprop PYTHON]   # the fits that the results lack
    python scripts/benchmark.py molecules show                                     # their table

The data are CSV files of MoleculeNet in --data or EGIN_MOLECULES. Every fit is a process of one thread, which adds its row to
docs/benchmark-molecules.csv when it has finished: an interrupted benchmark resumes where it stopped. chemprop runs in an
environment of its own (pip install torch==2.13.0 chemprop), whose Python is --chemprop or EGIN_CHEMPROP; without it, its fits are
left out.
"""

import argparse
import csv
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

import pandas as pd
from molecule_fits import MoleculeSet, Score, fit_chemprop, fit_ours, write_split
from molecule_table import format_table

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "docs" / "benchmark-molecules.csv"
RUNS = ROOT / "outputs" / "molecules"

TOX21 = (
    "NR-AR NR-AR-LBD NR-AhR NR-Aromatase NR-ER NR-ER-LBD NR-PPAR-gamma SR-ARE SR-ATAD5 SR-HSE SR-MMP SR-p53"
)
DATA = {
    "ESOL": MoleculeSet("esol.csv", ("log_solubility",), "rmse"),
    "BACE": MoleculeSet("bace.csv", ("inhibitor",), "auroc"),
    "BACE pIC50": MoleculeSet("bace.csv", ("pIC50",), "rmse"),
    "Tox21": MoleculeSet("tox21.csv", tuple(TOX21.split()), "auroc"),
    "HIV": MoleculeSet("hiv.csv", ("active",), "auroc"),
}
NETWORK = ["trainer=molecules", "dataset.features=rich"]
MODELS = {
    "EGIN-E": ["model=egin_e", *NETWORK],
    "EGIN-C": ["model=egin_c", *NETWORK],
    "EGIN-M": ["model=egin_m", *NETWORK],
    "GINE": ["model=gine", *NETWORK],
    "E-WL forest": ["model=ewl_forest"],
    "Morgan forest": ["model=morgan_forest"],
    "chemprop": [],
}
SPLITS = ("random", "scaffold")
SEEDS = (0, 1, 2)
# Fits that take most of an hour each are made once.
LONG = {("HIV", "chemprop", "random"): (), ("HIV", "chemprop", "scaffold"): (0,)}


@dataclass(frozen=True)
class Fit:
    data: str
    split: str
    model: str
    seed: int

    @property
    def path(self) -> Path:
        """Directory of its run."""
        return RUNS / "-".join(str(value) for value in astuple(self)).replace(" ", "_")

    @property
    def table(self) -> Path:
        """The molecules with their split, which is the same for all models, and the scaffold split for all seeds."""
        seed = "" if self.split == "scaffold" else f"-{self.seed}"
        return RUNS / "splits" / f"{self.data}-{self.split}{seed}.csv".replace(" ", "_")


def all_fits() -> Iterator[Fit]:
    for data in DATA:
        for split in SPLITS:
            for model in MODELS:
                for seed in LONG.get((data, model, split), SEEDS):
                    yield Fit(data, split, model, seed)


def finished() -> set[Fit]:
    if not RESULTS.exists():
        return set()
    rows = pd.read_csv(RESULTS)[["data", "split", "model", "seed"]].itertuples(index=False)
    return {Fit(*row) for row in rows}


def run(root: Path, only: str, chemprop: Path | None) -> None:
    for fit in all_fits():
        if not re.search(only, str(fit)) or (fit.model == "chemprop" and not chemprop) or fit in finished():
            continue
        print(fit, flush=True)
        add_row(fit, measure(fit, root, chemprop))


def measure(fit: Fit, root: Path, chemprop: Path | None) -> Score:
    data = DATA[fit.data]
    if not fit.table.exists():
        write_split(data, root, fit.split, fit.seed, fit.table)
    shutil.rmtree(fit.path, ignore_errors=True)  # of an interrupted fit, whose CPU time is not known
    fit.path.parent.mkdir(parents=True, exist_ok=True)
    if fit.model == "chemprop" and chemprop:
        return fit_chemprop(data, fit.table, chemprop, fit.seed, fit.path)
    return fit_ours(data, fit.table, MODELS[fit.model], fit.seed, fit.path)


def add_row(fit: Fit, score: Score) -> None:
    """One write of one line, so that several processes may add rows."""
    row = asdict(fit) | {"metric": DATA[fit.data].metric}
    row |= {name: f"{value:.5g}" for name, value in asdict(score).items()}
    with RESULTS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if not file.tell():
            writer.writeheader()
        writer.writerow(row)


def main(words: list[str]) -> None:
    args = parse(words)
    if args.command == "show":
        print(format_table(pd.read_csv(RESULTS), list(all_fits())))
    elif args.data is None:
        sys.exit(
            "error: molecules run needs --data, the directory of esol.csv, bace.csv, …, or EGIN_MOLECULES"
        )
    else:
        run(args.data, args.only, args.chemprop)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("show")
    fits = commands.add_parser("run")
    fits.add_argument("--data", type=Path, default=os.environ.get("EGIN_MOLECULES"))
    fits.add_argument("--chemprop", type=Path, default=os.environ.get("EGIN_CHEMPROP"), metavar="PYTHON")
    fits.add_argument("--only", default="", metavar="REGEX", help="of fits as they are printed")
    return parser.parse_args(arguments)
