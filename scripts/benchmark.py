"""How fast we are beside other libraries: ratios of one run on one machine.

    python scripts/benchmark.py steps        # training steps against PyG and DGL: pip install -e ".[bench]" first
    python scripts/benchmark.py parts        # what a training step of ours consists of
    python scripts/benchmark.py cross_validation   # whole ten-fold cross-validations against PyG
    python scripts/benchmark.py arithmetic   # training under reproducible=avx2 and any
    python scripts/benchmark.py growth       # how time and memory of a step grow, and what a large set takes
    python scripts/benchmark.py epochs       # whole epochs of 42,000 molecules against PyG, evaluation included
    python scripts/benchmark.py ranks        # the steps of an epoch by two ranks, beside one process
    python scripts/benchmark.py reading      # from SMILES to tensors, beside RDKit's parser
    python scripts/benchmark.py refinement   # colour refinement against networkx and GraKeL
    python scripts/benchmark.py large_set    # time and memory from 210,000 molecules to an epoch and to predictions
    python scripts/benchmark.py molecules    # molecules against chemprop: scores and CPU time

What follows the name goes to the benchmark; --help lists it.
"""

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent / "benchmarks"
NAMES = (
    "steps",
    "parts",
    "cross_validation",
    "arithmetic",
    "growth",
    "epochs",
    "ranks",
    "reading",
    "refinement",
    "large_set",
    "molecules",
)


def load(arguments: list[str]):
    """The benchmark that is named first: a file with `parse` and `main`."""
    if not arguments or arguments[0] not in NAMES:
        sys.exit(f"{(__doc__ or '').strip()}\n\nname one of: {', '.join(NAMES)}")
    if str(BENCHMARKS) not in sys.path:
        sys.path.insert(0, str(BENCHMARKS))
    return import_module(arguments[0])


def parse(arguments: list[str]) -> argparse.Namespace:
    return load(arguments).parse(arguments[1:])


if __name__ == "__main__":
    # One thread for every side, as in training: set before any of them is imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(load(sys.argv[1:]).main(sys.argv[2:]))
