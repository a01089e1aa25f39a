"""Compare runs in one table:

egin table                                                    all runs in outputs
egin table outputs/multirun/2026-11-16_12-00-00-000000
egin table outputs --paper --protocol common_epoch --out results
egin table outputs --compare egin_e gin
"""

import argparse
import sys
from pathlib import Path

from egin_dgl.errors import ConfigError
from egin_dgl.files import output_directory

# Repeated here, as the modules that define them take seconds to load.
PROTOCOL_NAMES = "selected, common_epoch, best_per_fold, last, last_20"
METRIC_NAMES = "rmse, mae, r2, spearman, auroc, average_precision, accuracy, balanced_accuracy, log_loss, brier, f1_macro, mcc, ece"


def main() -> None:
    args = parse(sys.argv[1:])
    for directory in args.directories:  # before modules are loaded that take seconds
        if not directory.is_dir():
            raise ConfigError(f"{directory}: no such directory")
    if args.out:
        output_directory(args.out)
    from rich.console import Console

    from egin_dgl.reporting.many_runs.report import make_report, print_report, write_report
    from egin_dgl.runs.reader import find_runs

    console = Console(emoji=False)
    try:
        runs = find_runs(args.directories)
        report = make_report(
            runs, args.protocol, args.metric, args.paper, args.compare and tuple(args.compare)
        )
        print_report(report, console)
        if not report.tables:
            raise ConfigError("no run has a finished fold, so there is no table")
        if args.out:
            write_report(report, args.out, console)
    except OSError as error:
        raise ConfigError(str(error)) from error


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "directories",
        nargs="*",
        type=Path,
        default=[Path("outputs")],
        metavar="DIRECTORY",
        help="runs, sweeps, or directories of them (default: outputs)",
    )
    parser.add_argument("--paper", action="store_true", help="show the paper's number next to each")
    parser.add_argument(
        "--protocol", metavar="P", help=f"{PROTOCOL_NAMES} or all (default: that of the runs)"
    )
    parser.add_argument("--metric", metavar="M", help=f"{METRIC_NAMES} (default: the monitored one)")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="test two models on the same folds")
    parser.add_argument(
        "--out", type=Path, metavar="DIRECTORY", help="write table.md, .csv, .tex, .png and .svg there"
    )
    return parser.parse_args(arguments)
