"""Log loss and calibration error of test graphs before and after temperature scaling: python scripts/calibration.py outputs"""

import argparse
import sys

from egin_dgl.errors import EginError
from egin_dgl.runs.reader import Run, find_runs
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.schemas import RunSummary, read_object

HEADER = (
    "| data | test graphs | temperature | log loss before | after | calibration error before | after |\n"
    "|---|---:|---:|---:|---:|---:|---:|\n"
)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs="+", metavar="DIR", help="directories with finished runs")
    return parser.parse_args(arguments)


def main() -> None:
    try:
        runs = [run for run in find_runs(parse(sys.argv[1:]).directories) if run.complete]
        print(HEADER + "".join(filter(None, map(table_row, runs))), end="")
    except EginError as error:
        sys.exit(f"error: {error}")


def table_row(run: Run) -> str:
    """A row of the table; empty for a run whose probabilities are not calibrated, or were not probabilities before."""
    record = read_object(RunDir(run.folder).summary, RunSummary)["calibration"]
    if record is None or None in record["log_loss"].values():
        return ""
    numbers = [record[metric][when] for metric in ("log_loss", "ece") for when in ("before", "after")]
    cells = [
        f"{record['graphs']:,}",
        f"{record['temperature']:.2f}",
        *(f"{number:.3f}" for number in numbers),
    ]
    return f"| {run.dataset} | {' | '.join(cells)} |\n"


if __name__ == "__main__":
    main()
