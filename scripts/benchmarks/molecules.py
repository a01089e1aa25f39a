"""Molecules: our networks and forests beside chemprop, on the same split files.

    python scripts/benchmark.py molecules run [--only REGEX] [--chemprop PYTHON]   # the fits that the results lack
    python scripts/benchmark.py molecules show                                     # tables of scores and CPU times
    python scripts/benchmark.py molecules calibration                              # log losses of our networks and forests

The data are CSV files of MoleculeNet in --data or EGIN_MOLECULES. Every fit is a process of one thread, which adds its row to
docs/benchmark-molecules.csv when it has finished: an interrupted benchmark resumes where it stopped. chemprop runs in an
environment of its own (pip install torch==2.13.0 chemprop), whose Python is --chemprop or EGIN_CHEMPROP; without it, its fits are
left out.
"""

import argparse
import csv
import math
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

import pandas as pd
from molecule_fits import MoleculeSet, Score, fit_chemprop, fit_ours, write_split
from molecule_table import format_calibration, format_tables

from egin_dgl.reproducibility import processor_name

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
    "Tox21": MoleculeSet("tox21.csv", tuple(TOX21.split()), "auroc", ("experiment=large",)),
    "HIV": MoleculeSet("hiv.csv", ("active",), "auroc", ("experiment=large",)),
}
NETWORKS = {"EGIN-E": "egin_e", "EGIN-C": "egin_c", "EGIN-M": "egin_m", "GINE": "gine"}
FORESTS = {"E-WL forest": "ewl_forest", "Morgan forest": "morgan_forest"}
MODELS = (*NETWORKS, *FORESTS, "chemprop")
SPLITS = ("random", "scaffold")
SEEDS = (0, 1, 2)
# Fits that take most of an hour each are made once.
LONG = {("HIV", "chemprop", "random"): (), ("HIV", "chemprop", "scaffold"): (0,)}


@dataclass(frozen=True)
class Fit:
    """One row of the results."""

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


COLUMNS = [*(field.name for kind in (Fit, Score) for field in fields(kind)), "processor"]


def all_fits() -> Iterator[Fit]:
    for data in DATA:
        for split in SPLITS:
            for model in MODELS:
                for seed in LONG.get((data, model, split), SEEDS):
                    yield Fit(data, split, model, seed)


def read_results() -> pd.DataFrame:
    """A row per finished fit."""
    return pd.read_csv(RESULTS) if RESULTS.exists() else pd.DataFrame(columns=COLUMNS)


def is_finished(fit: Fit) -> bool:
    """The file is read again for every fit, as several processes may add to it."""
    rows = read_results()[["data", "split", "model", "seed"]].itertuples(index=False, name=None)
    return astuple(fit) in rows


def run(root: Path, only: str, chemprop: Path | None) -> None:
    for fit in all_fits():
        if not re.search(only, str(fit)) or (fit.model == "chemprop" and not chemprop) or is_finished(fit):
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
    return fit_ours(data, fit.table, overrides(fit), fit.seed, fit.path)


def overrides(fit: Fit) -> list[str]:
    if fit.model in FORESTS:
        return [f"model={FORESTS[fit.model]}"]
    return [f"model={NETWORKS[fit.model]}", "dataset.features=rich", *DATA[fit.data].training]


def add_row(fit: Fit, score: Score) -> None:
    """One write of one line, so that several processes may add rows."""
    values = {name: "" if math.isnan(value) else f"{value:.5g}" for name, value in asdict(score).items()}
    with RESULTS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not file.tell():
            writer.writeheader()
        writer.writerow(asdict(fit) | values | {"processor": processor_name()})


def main(arguments: list[str]) -> None:
    args = parse(arguments)
    if args.command != "run":
        planned = pd.DataFrame([asdict(fit) | {"metric": DATA[fit.data].metric} for fit in all_fits()])
        show = {"show": format_tables, "calibration": format_calibration}[args.command]
        print(show(read_results(), planned))
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
    commands.add_parser("show", help="tables of scores and CPU times")
    commands.add_parser("calibration", help="a table of log losses before and after temperature scaling")
    fits = commands.add_parser("run", help="make the fits that the results lack")
    fits.add_argument("--data", type=Path, default=os.environ.get("EGIN_MOLECULES"))
    fits.add_argument("--chemprop", type=Path, default=os.environ.get("EGIN_CHEMPROP"), metavar="PYTHON")
    fits.add_argument("--only", default="", metavar="REGEX", help="of fits as they are printed")
    return parser.parse_args(arguments)
