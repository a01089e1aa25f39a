"""One table of any set of runs:

python scripts/table.py outputs/multirun/2026-11-16_12-00-00-000000
python scripts/table.py outputs --paper --protocol common_epoch --out results
python scripts/table.py outputs --compare egin_e gin
"""

import argparse
import sys
from pathlib import Path

try:
    import egin_dgl  # noqa: F401
except ImportError as error:
    sys.exit(f"error: {error}")

from rich.console import Console

from egin_dgl.errors import EginError
from egin_dgl.evaluation.metrics import MAIN, METRICS
from egin_dgl.evaluation.protocols import PROTOCOLS
from egin_dgl.reporting.many_runs.report import make_report, print_report, write_report
from egin_dgl.runs.reading import find_runs


def main() -> None:
    args = parse(sys.argv[1:])
    console = Console()
    try:
        runs = find_runs(args.folders)
        report = make_report(
            runs, args.protocol, args.metric, args.paper, args.compare and tuple(args.compare)
        )
        print_report(report, console)
        if not report.tables:
            sys.exit("error: no fold of any run is finished, so there is no table")
        if args.out:
            write_report(report, args.out, console)
    except (EginError, OSError) as error:
        sys.exit(f"error: {error}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="runs, or folders of runs")
    parser.add_argument("--paper", action="store_true", help="put the paper's number beside each")
    parser.add_argument(
        "--protocol", metavar="P", help=f"{', '.join(PROTOCOLS)} or all (default: the runs' own)"
    )
    parser.add_argument("--metric", metavar="M", default=MAIN.name, help=f"{', '.join(METRICS)}")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="test two models on the same folds")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="write table.md, .csv, .tex and .png there"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
