"""One table of any set of runs:

egin table outputs/multirun/2026-11-16_12-00-00-000000
egin table outputs --paper --protocol common_epoch --out results
egin table outputs --compare egin_e gin
"""

import argparse
import sys
from pathlib import Path

from egin_dgl.errors import EginError

# Their names, which take seconds to load from where they are defined.
PROTOCOL_NAMES = "selected, common_epoch, best_per_fold, last, last_20"
METRIC_NAMES = "accuracy, balanced_accuracy, f1_macro, mcc, auroc, average_precision, log_loss, brier, ece"


def main() -> None:
    args = parse(sys.argv[1:])
    for folder in args.folders:  # told at once: what reads runs takes seconds to load
        if not Path(folder).is_dir():
            sys.exit(f"error: {folder}: no such folder")
    from rich.console import Console

    from egin_dgl.reporting.many_runs.report import make_report, print_report, write_report
    from egin_dgl.runs.reader import find_runs

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
    parser.add_argument("--protocol", metavar="P", help=f"{PROTOCOL_NAMES} or all (default: the runs' own)")
    parser.add_argument("--metric", metavar="M", default="accuracy", help=METRIC_NAMES)
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="test two models on the same folds")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="write table.md, .csv, .tex and .png there"
    )
    return parser.parse_args(arguments)
