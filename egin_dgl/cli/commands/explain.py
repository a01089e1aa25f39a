"""Show which edges and nodes a prediction of a trained run depends on:

egin explain run=outputs/smiles/egin_e/2026-11-16_12-00-00-000000 input=new.csv graph=mol_7
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from egin_dgl.cli.arguments import TrainedRunOptions, run_with_options
from egin_dgl.errors import ConfigError
from egin_dgl.files import output_directory

if TYPE_CHECKING:
    from egin_dgl.data.dataset import GraphDataset
    from egin_dgl.inference.trained_run import TrainedRun


class ExplainOptions(TrainedRunOptions):
    graph: str | None = Field(None, description="id of the graph to explain; null: the only one")
    target: str | None = Field(
        None, description="class or target to explain; null: the most probable class, or the only target"
    )
    out: str | None = Field(
        None, description="directory for edges.csv, nodes.csv and explanation.png; null: explained_GRAPH"
    )
    by: Literal["occlusion", "gradients"] = Field("occlusion", description="method of the picture")


def main() -> None:
    run_with_options(explain_prediction, ExplainOptions, str(__doc__))


def explain_prediction(options: ExplainOptions) -> None:
    from rich.progress import Progress

    from egin_dgl.inference.explanation import explain_graph
    from egin_dgl.reporting.one_run.explanation import explanation_table, write_explanation
    from egin_dgl.terminal import make_console
    from egin_dgl.training.parallel.workers import one_thread

    if options.out:
        output_directory(Path(options.out))  # an error before any work
    run = options.load()
    graph = find_graph(run, options.input, options.graph)
    out = output_directory(Path(options.out or f"explained_{graph.names[0]}"))
    terminal = make_console(stderr=True)
    with (
        one_thread(),
        Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as progress,
    ):
        task = progress.add_task("")
        explanation = explain_graph(
            run,
            graph,
            options.target,
            lambda method, done, total: progress.update(
                task, description=method, completed=done, total=total
            ),
        )
    if options.by not in explanation.edges:
        raise ConfigError("a kernel machine or a forest has no gradients: use by=occlusion")
    write_explanation(explanation, graph, out, options.by)
    console = make_console()
    console.print(explanation_table(explanation, graph, options.by))
    console.print(f"edges.csv, nodes.csv, explanation.png in {out}", highlight=False, soft_wrap=True)


def find_graph(run: "TrainedRun", path: str, name: str | None) -> "GraphDataset":
    """The graph of this id in a file, or its only one, as a dataset of one graph."""
    from egin_dgl.inference.subgraphs import one_graph

    first_names: list[str] = []
    for dataset in run.read_datasets(path):
        if name is None and len(dataset) == 1 and not first_names:
            return dataset
        if name is not None and name in dataset.names:
            return one_graph(dataset, list(dataset.names).index(name))
        first_names = first_names or list(dataset.names[:5])
    problem = "has several graphs: choose one with graph=ID" if name is None else f"has no graph {name!r}"
    raise ConfigError(f"{path} {problem}; its first are {', '.join(first_names) or 'none'}")
