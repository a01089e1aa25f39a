"""A whole ten-fold cross-validation, process start to table: ours beside the same written plainly with PyG.

    python scripts/benchmark.py cross_validation [--datasets MUTAG,PTC_MR,Cuneiform] [--models egin,egin_e] [--turns 3]

Both evaluate after every epoch on two cores; ours also logs to TensorBoard, keeps checkpoints, draws pictures and averages
weights as its defaults say. PyG's side is scripts/pyg_cross_validation.py, with Adam as it comes and in its fused kernel.
The sides take turns; the minimum over turns of the wall-clock time in seconds, and its ratios, are printed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from egin_dgl.reproducibility import processor_name
from egin_dgl.training.parallel.resources import cores

SCRIPTS = Path(__file__).resolve().parent.parent
EPOCHS = {"MUTAG": 100, "PTC_MR": 50, "Cuneiform": 100}
TARGETS = {"egin": 2.0, "egin_e": 1.7, "egin_c": 1.2}  # times as fast as either of PyG's


def seconds(*command: str | Path) -> float:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(map(str, command))}\n{done.stderr}")
    return time.perf_counter() - start


def ours(model: str, dataset: str, epochs: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        overrides = [f"model={model}", f"dataset={dataset.lower()}", f"trainer.epochs={epochs}"]
        return seconds(SCRIPTS / "train.py", *overrides, f"hydra.run.dir={folder}")


def pyg(dataset: str, epochs: int, root: Path, *flags: str) -> float:
    options = [dataset, "--root", str(root), "--epochs", str(epochs), *flags]
    return seconds(SCRIPTS / "pyg_cross_validation.py", *options)


def main(arguments: list[str]) -> None:
    args = parse(arguments)
    if args.root is None:
        sys.exit("error: PyG's side needs --root, a folder with TU datasets, or EGIN_DATA_ROOT")
    models = args.models.split(",")
    print(f"{processor_name()}, {len(cores())} cores, the least of {args.turns} turn(s)\n")
    print("| dataset, epochs | model | PyG, s | fused, s | ours, s | × PyG | × fused | aim |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for dataset in args.datasets.split(","):
        epochs = args.epochs or EPOCHS.get(dataset, 100)
        sides = {
            "PyG": lambda d=dataset, e=epochs: pyg(d, e, args.root),
            "fused": lambda d=dataset, e=epochs: pyg(d, e, args.root, "--fused"),
            **{model: lambda m=model, d=dataset, e=epochs: ours(m, d, e) for model in models},
        }
        least = dict.fromkeys(sides, float("inf"))
        for _ in range(args.turns):
            for name, run in sides.items():
                least[name] = min(least[name], run())
        for model in models:
            aim = TARGETS.get(model, 0.0)
            cells = [f"{dataset}, {epochs}", model]
            cells += [f"{least[side]:.1f}" for side in ("PyG", "fused", model)]
            for ratio in (least[other] / least[model] for other in ("PyG", "fused")):
                cells.append(f"{ratio:.2f}" if ratio >= aim else f"**{ratio:.2f}**")
            print(f"| {' | '.join(cells)} | {aim:g} |", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", default=",".join(EPOCHS))
    parser.add_argument("--models", default=",".join(TARGETS))
    parser.add_argument("--epochs", type=int, help="for all datasets (default: 100, of PTC_MR 50)")
    parser.add_argument("--turns", type=int, default=3)
    root = os.environ.get("EGIN_DATA_ROOT")
    parser.add_argument(
        "--root", type=Path, default=root, help="folder of TU datasets, if not EGIN_DATA_ROOT"
    )
    return parser.parse_args(arguments)
