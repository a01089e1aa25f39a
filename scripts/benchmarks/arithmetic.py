"""The cost of bitwise reproducibility: training under `reproducible`, beside the machine as it is.

    python scripts/benchmark.py arithmetic [--datasets mutag,cox2_md] [--models egin_e,egin_c] [--turns 3]

Two folds a run, on all cores; seconds from the first fold to the table. The settings take turns; the minimum over turns and its
ratios are printed.
"""

import argparse
import json
import tempfile
from pathlib import Path

from cross_validation import SCRIPTS, seconds

from egin_dgl.reproducibility import processor_name

SETTINGS = ("false", "avx2", "any")


def training(*overrides: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        seconds(SCRIPTS / "train.py", *overrides, "cv.fold=[0,1]", f"hydra.run.dir={folder}")
        return json.loads((Path(folder) / "summary.json").read_text(encoding="utf-8"))["seconds"]


def main(arguments: list[str]) -> None:
    args = parse(arguments)
    print(f"{processor_name()}, the least of {args.turns} turn(s)\n")
    print(
        "| dataset, model | as it is, s | avx2, s | any, s | × avx2 | × any |\n|---|---:|---:|---:|---:|---:|"
    )
    for dataset in args.datasets.split(","):
        for model in args.models.split(","):
            overrides = [f"dataset={dataset}", f"model={model}", f"trainer.epochs={args.epochs}"]
            least = dict.fromkeys(SETTINGS, float("inf"))
            for _ in range(args.turns):
                for setting in SETTINGS:
                    least[setting] = min(least[setting], training(*overrides, f"reproducible={setting}"))
            as_it_is, *others = least.values()
            cells = [*(f"{value:.1f}" for value in least.values()), *(f"{s / as_it_is:.2f}" for s in others)]
            print(f"| {dataset}, {model} | {' | '.join(cells)} |", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", default="mutag,cox2_md")
    parser.add_argument("--models", default="egin_e,egin_c")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--turns", type=int, default=3)
    return parser.parse_args(arguments)
