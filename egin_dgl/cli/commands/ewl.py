"""Colour refinement on the command line:

egin ewl audit dataset=mutag            bounds on scores by 1-WL and E-WL; duplicates
egin ewl compare dataset=ptc_mr 3 17    are two graphs distinguished, at which depth, by which colours
egin ewl draw dataset=mutag 3           a picture of a graph coloured by refinement depth
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from egin_dgl.cli.config_dirs import compose_config, search_path
from egin_dgl.cli.error_messages import check_overrides
from egin_dgl.errors import ConfigError

if TYPE_CHECKING:
    from egin_dgl.data.dataset import GraphDataset

REFINEMENTS = ("1-wl", "e-wl", "e-wl-ea")  # repeated here, as egin_dgl.ewl takes seconds to load


def main() -> None:
    check_overrides(sys.argv[1:])
    options = parse(sys.argv[1:])
    overrides = [*search_path(options.config_dir), *(one for one in options.arguments if "=" in one)]
    numbers = [one for one in options.arguments if "=" not in one]
    if wrong := [one for one in numbers if not one.isdecimal()]:
        raise ConfigError(f"{wrong[0]!r} is neither an option like dataset=mutag nor the number of a graph")
    commands = {"audit": (0, run_audit), "draw": (1, run_draw), "compare": (2, run_compare)}
    count, run = commands[options.command]
    if len(numbers) != count:
        raise ConfigError(f"{options.command} takes {count} numbers of graphs, got {len(numbers)}")
    for dataset in load_datasets(overrides):
        run(dataset, [int(one) for one in numbers], options)


def load_datasets(overrides: list[str]) -> Iterator["GraphDataset"]:
    """The datasets of overrides such as dataset=mutag,aids and dataset.root=DIRECTORY, one after the other."""
    chosen = [override for override in overrides if override.startswith("dataset=")]
    rest = [override for override in overrides if override not in chosen]
    for name in chosen[-1].removeprefix("dataset=").split(",") if chosen else [""]:
        cfg = compose_config([f"dataset={name}", *rest] if name else rest)
        from egin_dgl.cli.experiment import build  # imports torch, which a misspelt option does not need
        from egin_dgl.cli.validation import resolve_settings

        yield build(resolve_settings(cfg), "dataset")


def run_audit(dataset, numbers, options) -> None:
    from egin_dgl.data.splits import load_folds
    from egin_dgl.ewl import audit
    from egin_dgl.reporting.dataset_summary import (
        audit_hints,
        audit_table,
        data_line,
        duplicates_line,
        target_table,
    )
    from egin_dgl.terminal import make_console

    folds = load_folds(options.folds, dataset.labels.numpy(), dataset.info.name) if options.folds else None
    result = audit(
        dataset,
        depth=options.depth,
        folds=folds,
        decimals=options.decimals,
        attributes=not options.no_attributes,
        progress=sys.stderr.isatty(),
    )
    if options.json:  # groups of graphs are given by number; `ids` has their names
        print(json.dumps(result.to_dict() | {"ids": list(dataset.names)}))
        return
    console = make_console()
    for line in (data_line(dataset), *audit_hints(result, dataset, not options.no_attributes)):
        console.print(line, soft_wrap=True, highlight=False)
    console.print(audit_table(result))
    if len(result.targets) > 1:
        console.print(target_table(result))
    console.print(duplicates_line(result), soft_wrap=True)


def run_compare(dataset, numbers, options) -> None:
    from egin_dgl.ewl import distinguish

    first, second = (get_graph(dataset, number) for number in numbers)
    methods = options.method or ("1-wl", "e-wl")
    results = {method: distinguish(first, second, method, exact=not options.quick) for method in methods}
    if options.json:
        record = {
            m: {"isomorphic": r.isomorphic, "distinguished": r.distinguished, "depth": r.depth}
            for m, r in results.items()
        }
        print(json.dumps({"dataset": dataset.info.name, "graphs": numbers, "methods": record}))
        return
    print(f"{dataset.info.name}, graphs {numbers[0]} and {numbers[1]}:")
    for result in results.values():
        print(f"  {result}")


def run_draw(dataset, numbers, options) -> None:
    from egin_dgl.ewl.draw import draw_refinement

    (number,) = numbers
    method = (options.method or ["e-wl"])[0]
    path = Path(options.out or f"{dataset.info.name}_{number}_{method}.png")
    names = {"node_names": dataset.info.node_names, "edge_names": dataset.info.edge_names}
    title = f"{method.upper()} on graph {number} of {dataset.info.name}"
    graph = get_graph(dataset, number)
    result = draw_refinement(
        graph, path, method, options.depth, title=title, attributes=not options.no_attributes, **names
    )
    counts = [result.num_colors(depth) for depth in range(result.depth + 1)]
    if options.json:
        record = {"dataset": dataset.info.name, "graph": number, "colors": counts, "picture": str(path)}
        print(json.dumps(record))
    else:
        print(f"{path}: {', '.join(map(str, counts))} colours at depths 0 to {result.depth}")


def get_graph(dataset, number: int):
    from egin_dgl.ewl import as_graph_set

    if not 0 <= number < len(dataset):
        raise ConfigError(f"{dataset.info.name} has the graphs 0 to {len(dataset) - 1}, not {number}")
    return as_graph_set(dataset)[number]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("audit", "compare", "draw"))
    parser.add_argument(
        "arguments", nargs="*", metavar="dataset=NAME | graph", help="dataset=a,b for several"
    )
    parser.add_argument("--config-dir", type=Path, metavar="DIRECTORY", help="with your own YAML files")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument(
        "--method", action="append", choices=REFINEMENTS, help="default: 1-wl and e-wl; draw: e-wl"
    )
    parser.add_argument("--depth", type=int, default=None, help="audit: 5, draw: 3")
    parser.add_argument(
        "--folds", metavar="FILE", help="audit: a folds.json, to find duplicates across its splits"
    )
    parser.add_argument("--decimals", type=int, help="round attributes before comparing them")
    parser.add_argument("--no-attributes", action="store_true", help="compare discrete labels only")
    parser.add_argument(
        "--quick", action="store_true", help="compare: no exact search where colours are equal"
    )
    parser.add_argument("--out", metavar="FILE", help="draw: the picture to write")
    options = parser.parse_intermixed_args(arguments)
    if options.depth is None:
        options.depth = 5 if options.command == "audit" else 3
    return options
