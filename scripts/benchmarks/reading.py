"""From SMILES to tensors: molecules per second of one core, beside RDKit's parser alone, and of all cores.

    python scripts/benchmark.py reading [--path hiv.csv] [--target active] [--rows 0]

The table is --path, or hiv.csv in the directory EGIN_MOLECULES; --rows takes its first rows only. One core is measured in CPU time,
all cores by the clock, the start of the processes included.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from rdkit import Chem, RDLogger

from egin_dgl.data import load_smiles
from egin_dgl.parallel import use_processes
from egin_dgl.reproducibility import processor_name
from egin_dgl.training.parallel.resources import cores
from egin_dgl.training.parallel.workers import chunk_processes


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmark.py reading")
    parser.add_argument("--path", type=Path, default=Path(os.environ.get("EGIN_MOLECULES", ".")) / "hiv.csv")
    parser.add_argument("--target", default="active", help="column of the table")
    parser.add_argument("--rows", type=int, help="of the table to take. Default: all")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    if not options.path.is_file():
        sys.exit(
            f"error: there is no {options.path}: give --path, or EGIN_MOLECULES, the directory of hiv.csv"
        )
    RDLogger.DisableLog("rdApp.*")
    frame = pd.read_csv(options.path, nrows=options.rows)
    start = time.process_time()
    for smiles in frame["smiles"]:
        Chem.MolFromSmiles(smiles)
    parsing = len(frame) / (time.process_time() - start)
    print(f"{len(frame):,} molecules; {processor_name()}, {len(cores())} cores")
    print(f"RDKit's parser alone: {parsing:,.0f} molecules per second of one core\n")
    print(
        "| features | per second of one core | of the parser's rate, % | per second, all cores |\n|---|---:|---:|---:|"
    )
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory) / "molecules.csv"
        frame.to_csv(table, index=False)
        for features in ("tu", "rich"):
            read = {"target": options.target, "features": features, "on_invalid": "skip", "cache": False}
            start = time.process_time()
            load_smiles(str(table), **read)
            one = len(frame) / (time.process_time() - start)
            begin = time.perf_counter()
            with use_processes(chunk_processes(len(cores()))):
                load_smiles(str(table), **read)
            every = len(frame) / (time.perf_counter() - begin)
            print(f"| {features} | {one:,.0f} | {100 * one / parsing:.0f} | {every:,.0f} |", flush=True)
