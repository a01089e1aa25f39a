r"""Contributions of nodes and edges to a prediction: occlusion and integrated gradients.

Explained is f, averaged over the models of a run: the log-odds of a class or of a label, or a value in its units.

Occlusion removes an edge in both directions (or a node with its edges) before any transform:
``f(graph) − f(graph without it)``. It works for every model.

Integrated gradients distribute ``f(x) − f(0)`` over the features x of nodes and edges, along a straight path from 0:

.. math:: x \int_0^1 \nabla f(\alpha x)\, d\alpha

summed over the features of a node, and over both directions of an edge. They exist for networks only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pandas as pd
import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.loader import assemble
from egin_dgl.errors import ConfigError, DataError, did_you_mean
from egin_dgl.ewl.preprocessing import ColorEmbedding
from egin_dgl.inference.subgraphs import make_subgraphs, undirected_edges
from egin_dgl.inference.trained_fold import TrainedFold
from egin_dgl.inference.trained_run import TrainedRun
from egin_dgl.tasks import Task

STEPS = (64, 256, 1024, 4096)  # of the integral, tried until the residual is small
MAX_RESIDUAL = 0.01
MAX_ROWS = 2**18  # nodes and edges of a batch of modified graphs
MAX_OCCLUDED_ROWS = 2 * 10**8  # nodes and edges of all modified graphs and folds: some minutes of one core

OnProgress: TypeAlias = Callable[
    [str, int, int], None
]  # called with the method, steps done and steps in total


@dataclass(frozen=True, eq=False)
class Explanation:
    """Contributions to the log-odds of a class or label, or to a value; positive ones raise it."""

    graph: str  # id
    target: str  # the class or target
    value: float  # its probability or value
    task: type[Task]
    nodes: pd.DataFrame  # node, occlusion, gradients
    edges: pd.DataFrame  # source, target, occlusion, gradients; both directions in one row
    residual: (
        float | None
    )  # part of f(x) − f(0) that the gradients do not sum to; None for kernels and forests

    def __repr__(self) -> str:
        sizes = f"{len(self.nodes)} nodes, {len(self.edges)} edges"
        return f"Explanation(graph {self.graph}: {self.prediction}, {sizes})"

    @property
    def prediction(self) -> str:
        """What is explained, for people."""
        return self.task.describe(self.target, self.value)

    def to_frame(self) -> pd.DataFrame:
        """Nodes and edges in one table, see `TrainedRun.explain`."""
        nodes = self.nodes.rename(columns={"node": "source"}).assign(part="node")
        nodes["destination"] = nodes["source"]
        edges = self.edges.rename(columns={"target": "destination"}).assign(part="edge")
        frame = pd.concat([nodes, edges], ignore_index=True)
        frame = frame.assign(graph=self.graph, target=self.target, value=self.value)
        methods = [name for name in ("occlusion", "gradients") if name in frame]
        return frame[["graph", "target", "value", "part", "source", "destination", *methods]]


def explain_graph(
    run: TrainedRun,
    graph: GraphDataset,
    target: str | None = None,
    on_progress: OnProgress = lambda method, done, total: None,
) -> Explanation:
    """Explain the prediction of a run for a dataset of one graph, encoded by the run.

    `target` is the name of a class or target; default: the most probable class, or the only target.

    Occlusion is one forward pass of every fold for each node and edge: a graph where this is more than MAX_OCCLUDED_ROWS
    nodes and edges together is a `DataError`.
    """
    if len(graph) != 1:
        raise DataError(f"explain_graph takes one graph, got {len(graph)}")
    check_size(run, graph)
    prediction = run.predict_dataset(graph).values[0]
    output = choose_output(run, prediction, target)
    pairs, pair_of_edge = undirected_edges(graph)
    occluded = occlude(run, graph, output, pair_of_edge, len(pairs), on_progress)
    whole, without_edge, without_node = occluded
    nodes = {"node": range(len(without_node)), "occlusion": (whole - without_node).numpy()}
    edges = {"source": pairs[:, 0].numpy(), "target": pairs[:, 1].numpy()}
    edges |= {"occlusion": (whole - without_edge).numpy()}
    residual = None
    networks = [(fold, fold.model) for fold in run.folds if isinstance(fold.model, nn.Module)]
    if networks:
        results = []
        for number, (fold, model) in enumerate(networks):
            on_progress("gradients", number, len(networks))
            results.append(integrated_gradients(fold, model, graph, output))
        by_node, by_edge = (torch.stack(one).mean(dim=0) for one in list(zip(*results, strict=True))[:2])
        by_pair = torch.zeros(len(pairs), dtype=torch.float64).index_add_(0, pair_of_edge, by_edge)
        nodes["gradients"], edges["gradients"] = by_node.numpy(), by_pair.numpy()
        total = sum(result[2] for result in results) / len(results)
        residual = abs(total - float(by_node.sum() + by_pair.sum())) / max(abs(total), 1e-12)
    return Explanation(
        graph=graph.names[0],
        target=run.info.output_names[output],
        value=float(prediction[output]),
        task=run.task,
        nodes=pd.DataFrame(nodes),
        edges=pd.DataFrame(edges),
        residual=residual,
    )


def choose_output(run: TrainedRun, prediction: Tensor, target: str | None) -> int:
    """The number of the output to explain, given its name; by default the most probable class, or the only target."""
    names, kind = run.info.output_names, "class" if run.info.classes else "target"
    if target is None and run.info.classes:
        return int(prediction.argmax())
    if target is None and len(names) == 1:
        return 0
    if target in names:
        return names.index(target)
    valid = ", ".join(names)
    if target is None:
        raise ConfigError(f"the run predicts {len(names)} targets: choose one with target=NAME of {valid}")
    raise ConfigError(f"the run has no {kind} {target!r}; valid: {valid}{did_you_mean(target, names)}")


def check_size(run: TrainedRun, graph: GraphDataset) -> None:
    nodes, edges = len(graph.node_feats), len(graph.src)
    pairs = len(undirected_edges(graph)[0])
    if len(run.folds) * (nodes + pairs) * (nodes + edges) <= MAX_OCCLUDED_ROWS:
        return
    passes = f"{len(run.folds) * (nodes + pairs):,} forward passes"
    hint = "; fold=0 explains the model of one fold" if len(run.folds) > 1 else ""
    raise DataError(
        f"graph {graph.names[0]} has {nodes:,} nodes and {pairs:,} edges: to leave out each takes {passes}, more than the limit "
        f"of {MAX_OCCLUDED_ROWS:,} nodes and edges in all of them{hint}"
    )


def evidence(run: TrainedRun, dataset: GraphDataset, output: int) -> Tensor:
    """(G,) what is explained, the mean over the models of the run."""
    return torch.stack([fold.evidence(fold.logits(dataset), output) for fold in run.folds]).mean(dim=0)


def occlude(
    run: TrainedRun,
    graph: GraphDataset,
    output: int,
    pair_of_edge: Tensor,
    pairs: int,
    on_progress: OnProgress,
) -> tuple[Tensor, Tensor, Tensor]:
    """f of the graph, of the graph without each undirected edge (P,), and without each node (N,)."""
    size = graph.info.node_dim and len(graph.node_feats)
    all_nodes, all_edges = torch.ones(size, dtype=torch.bool), torch.ones(len(graph.src), dtype=torch.bool)

    def masks(number: int) -> tuple[Tensor, Tensor]:
        """Of nodes and edges: of the whole graph, then without each pair, then without each node."""
        if number == 0:
            return all_nodes, all_edges
        if number <= pairs:
            return all_nodes, pair_of_edge != number - 1
        others = torch.arange(size) != number - 1 - pairs
        return others, others[graph.src] & others[graph.dst]

    vocabulary, total = run.folds[0].vocabulary, 1 + pairs + size
    values = []
    for numbers in torch.arange(total).split(max(1, MAX_ROWS // (size + len(graph.src) + 1))):
        on_progress("occlusion", int(numbers[0]), total)
        subgraphs = make_subgraphs(graph, [masks(number) for number in numbers.tolist()], vocabulary)
        values.append(evidence(run, subgraphs, output))
    found = torch.cat(values)
    return found[0], found[1 : 1 + pairs], found[1 + pairs :]


def integrated_gradients(
    fold: TrainedFold, model: nn.Module, graph: GraphDataset, output: int
) -> tuple[Tensor, Tensor, float]:
    """Contributions of nodes (N,) and directed edges (E,), and f(x) − f(0), to which they sum.

    The number of steps grows until the residual is small: f with normalized features is far from linear.
    """
    dataset = fold.transform(graph)
    size = len(dataset.node_feats) + len(dataset.src) + 1
    for steps in STEPS:
        batch = min(steps, max(1, MAX_ROWS // size))
        alphas = (torch.arange(steps, device=fold.device) + 0.5) / steps  # midpoints
        results = [sum_gradients(fold, model, dataset, output, some) for some in alphas.split(batch)]
        nodes, edges = (torch.stack(one).sum(dim=0) / steps for one in list(zip(*results, strict=True))[:2])
        rise = results[0][2]
        if abs(rise - float(nodes.sum() + edges.sum())) <= MAX_RESIDUAL * abs(rise):
            break
    return nodes, edges, rise


def sum_gradients(
    fold: TrainedFold, model: nn.Module, dataset: GraphDataset, output: int, alphas: Tensor
) -> tuple[Tensor, Tensor, float]:
    """Σ over α of x ∇f(αx), for nodes and directed edges; and f(x) − f(0).

    By the definition of the model: the fast path treats sums of edge features as constants, without gradients.
    """
    steps = len(alphas)
    batch = assemble(dataset, torch.zeros(steps, dtype=torch.int64))
    node_feats = batch.node_feats
    if isinstance(model, ColorEmbedding):  # the gradient is that of the embedding, not of a colour's number
        node_feats, model = model.features(node_feats).detach(), model.model

    def f(nodes: Tensor, edges: Tensor) -> Tensor:
        return fold.evidence(fold.task.decode(model(batch.graph, nodes, edges)), output)

    features = (node_feats, batch.edge_feats)
    scaled = [
        (feats * alphas.repeat_interleave(len(feats) // steps)[:, None]).requires_grad_()
        for feats in features
    ]
    gradients = torch.autograd.grad(f(*scaled).sum(), scaled, allow_unused=True)
    sums = []
    for feats, gradient in zip(features, gradients, strict=True):
        product = torch.zeros_like(feats) if gradient is None else feats * gradient
        sums.append(product.double().sum(dim=1).view(steps, -1).sum(dim=0).cpu())
    with torch.no_grad():
        rise = f(*features)[0] - f(*(0 * feats for feats in features))[0]
    return sums[0], sums[1], float(rise)
