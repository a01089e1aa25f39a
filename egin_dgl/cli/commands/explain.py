"""Which edges and nodes an answer of a trained run rests on:

egin explain run=outputs/smiles/egin_e/2026-11-16_12-00-00-000000 input=new.csv graph=mol_7
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from egin_dgl.cli.commands.predict import option
from egin_dgl.cli.keywords import help_text, read_words
from egin_dgl.errors import ConfigError

if TYPE_CHECKING:
    from egin_dgl.data.dataset import GraphDataset
    from egin_dgl.inference.trained_run import TrainedRun


@dataclass(frozen=True)
class ExplainOptions:
    run: str = option("folder of a run")
    input: str = option("graphs: a CSV of SMILES, a folder of CSVs, a .bin of DGL, or a TU dataset")
    graph: str = option("the id of the graph to explain")
    out: str | None = option(
        "folder for edges.csv, nodes.csv and explanation.png; null: explained_GRAPH", default=None
    )
    by: str = option("what the picture shows: occlusion, gradients", default="occlusion")
    fold: int | None = option("one fold's model; null: all folds", default=None)
    device: str = option("auto, cpu, cuda, cuda:1", default="auto")
    trust: bool = option("let the folder name model classes that are not of this package", default=False)


def parse(words: list[str]) -> ExplainOptions:
    return read_words(ExplainOptions, words)


def main() -> None:
    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        print(help_text(ExplainOptions, str(__doc__)))
        return
    explain_one(parse(words))


def explain_one(wanted: ExplainOptions) -> None:
    from rich.console import Console

    from egin_dgl.inference.explanation import explain_graph
    from egin_dgl.inference.trained_run import load_run
    from egin_dgl.reporting.one_run.explanation import explanation_table, write_explanation
    from egin_dgl.training.device import pick_device
    from egin_dgl.training.parallel.workers import one_thread

    if wanted.by not in ("occlusion", "gradients"):
        raise ConfigError(f"by must be occlusion or gradients, got {wanted.by!r}")
    run = load_run(wanted.run, str(pick_device(wanted.device)), wanted.trust)
    if wanted.fold is not None:
        run = run.select_fold(wanted.fold)
    graph = find_graph(run, wanted.input, wanted.graph)
    with one_thread():
        found = explain_graph(run, graph)
    if wanted.by not in found.edges:
        raise ConfigError("a kernel machine has no gradients: use by=occlusion")
    folder = Path(wanted.out or f"explained_{wanted.graph}")
    write_explanation(found, graph, folder, wanted.by)
    console = Console()
    console.print(explanation_table(found, graph, wanted.by))
    console.print(f"edges.csv, nodes.csv, explanation.png in {folder}", highlight=False, soft_wrap=True)


def find_graph(run: "TrainedRun", path: str, name: str) -> "GraphDataset":
    """The graph of this id in a file."""
    from egin_dgl.inference.explanation import one_graph

    seen: list[str] = []
    for dataset in run.read_datasets(path):
        if name in dataset.names:
            return one_graph(dataset, list(dataset.names).index(name))
        seen = seen or list(dataset.names[:5])
    raise ConfigError(f"{path} has no graph {name!r}; its first are {', '.join(seen) or 'none'}")
