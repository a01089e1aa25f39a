"""How fast we are beside other libraries: ratios of one run on one machine.

    python scripts/benchmark.py steps        # training steps against PyG and DGL: pip install -e ".[bench]" first
    python scripts/benchmark.py refinement   # colour refinement against networkx and GraKeL; --without its tricks
    python scripts/benchmark.py cross_validation   # whole ten-fold cross-validations against PyG

What follows the name goes to the benchmark; --help lists it.
"""

import os
import runpy
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent / "benchmarks"

if __name__ == "__main__":
    # One thread for every side, as in training: set before any of them is imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names = sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem not in ("peers", "tricks"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"{__doc__.strip()}\n\nname one of: {', '.join(names)}")
    sys.argv = [str(BENCHMARKS / f"{sys.argv[1]}.py"), *sys.argv[2:]]
    sys.path.insert(0, str(BENCHMARKS))
    runpy.run_path(sys.argv[0], run_name="__main__")
