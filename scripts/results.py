"""Results of the paper's tables: collect them from runs, show them, compute them again.

python scripts/results.py update outputs/paper_tables   export, then make docs/results.png and the blocks of docs/results.md
python scripts/results.py export outputs/paper_tables   merge the finished runs of sweeps into docs/results
python scripts/results.py datasets                      write docs/results/datasets.json: sizes, majorities, bounds by 1-WL and E-WL
python scripts/results.py figure                        draw docs/results.png
python scripts/results.py show overview                 print a section of docs/results.md
python scripts/results.py verify dataset=mutag model=dgcnn cv=paper  train cells again and compare their digits
python scripts/results.py canaries                      train three short cells again; --write records their digits
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from docgen import claims, edge_worth, results_page
from docgen.blocks import format_output, load_register, replace_block
from docgen.dataset_facts import write_facts
from docgen.remake import package_versions
from docgen.results import export_runs
from docgen.results_figure import draw_results
from docgen.results_page import Results
from docgen.retrain import find_changed, load_canaries, verify_cells, write_canaries

from egin_dgl.cli.entrypoint import run_app
from egin_dgl.errors import ConfigError
from egin_dgl.files import write_text

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
SECTIONS: dict[str, Callable[[Results], str]] = {
    "overview": results_page.overview,
    "claims": claims.claims,
    "below": results_page.below_paper,
    "cells": results_page.per_dataset,
    "seeds": results_page.seeds,
    "nested": results_page.nested,
    "edges": edge_worth.edge_worth,
}


def export(sweeps: list[Path], commit: str | None) -> None:
    new, total = export_runs(sweeps, RESULTS, commit)
    print(f"{new} new cells, {total} in {RESULTS.relative_to(ROOT)}")


def figure() -> None:
    draw_results(Results.load(ROOT), ROOT / "docs" / "results.png")


def update(sweeps: list[Path], commit: str | None) -> None:
    export(sweeps, commit)
    figure()
    results, page = Results.load(ROOT), ROOT / "docs" / "results.md"
    register, text = load_register(ROOT / "docs" / "blocks.yaml"), page.read_text(encoding="utf-8")
    for name, show in SECTIONS.items():
        block = register[f"results_{name}"]
        text = replace_block(text, block, package_versions(), format_output(show(results), block))
    write_text(page, text)


def canaries(write: bool) -> None:
    path = RESULTS / "canaries.json"
    if write:
        write_canaries(path)
    elif changed := find_changed(load_canaries(path)):
        raise ConfigError(f"other digits than in {path.relative_to(ROOT)}: {'; '.join(changed)}")
    else:
        print("the canaries have the recorded digits")


def verify(words: list[str]) -> None:
    different = verify_cells(Results.load(ROOT).cells.values(), words, lambda line: print(line, flush=True))
    if different:
        raise ConfigError(f"other digits than in docs/results: {different}")


def main() -> None:
    options = parse(sys.argv[1:])
    if options.command in ("update", "export"):
        (update if options.command == "update" else export)(options.sweeps, options.commit)
    elif options.command == "datasets":
        write_facts(ROOT, RESULTS / "datasets.json")
    elif options.command == "figure":
        figure()
    elif options.command == "show":
        print(SECTIONS[options.section](Results.load(ROOT)))
    elif options.command == "verify":
        verify(options.words)
    else:
        canaries(options.write)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("update", "export"):
        command = commands.add_parser(name)
        command.add_argument("sweeps", nargs="*", type=Path, help="directories with finished runs")
        command.add_argument(
            "--commit", help="of the code that trained them; default: that of their repository"
        )
    commands.add_parser("datasets")
    commands.add_parser("figure")
    commands.add_parser("show").add_argument("section", choices=SECTIONS)
    commands.add_parser("verify").add_argument("words", nargs="+", help="words of the commands of cells")
    commands.add_parser("canaries").add_argument("--write", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    run_app(main)
