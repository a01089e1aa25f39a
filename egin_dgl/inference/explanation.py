r"""Which edges and nodes an answer rests on: occlusion, and integrated gradients.

What is explained is the log-odds f of the class that the run answers, averaged over its folds.

Occlusion takes an edge away, in both directions, before any transform sees the graph (a node: with all its edges):
``f(graph) − f(graph without it)``. It asks the whole model, whatever its kind.

Integrated gradients share ``f(x) − f(0)`` among the features x of nodes and edges, along the straight way from 0:

.. math:: x \int_0^1 \nabla f(\alpha x)\, d\alpha

summed over the columns of a node, and over both directions of an edge. Only a network has them.
"""

from dataclasses import dataclass, replace

import pandas as pd
import torch
from torch import Tensor, nn

from egin_dgl.data.arrays import RawColumns
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.loader import assemble
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import DataError
from egin_dgl.evaluation.metrics import margin
from egin_dgl.ewl.preprocessing import ColorEmbedding
from egin_dgl.inference.trained_fold import TrainedFold
from egin_dgl.inference.trained_run import TrainedRun

STEPS = (64, 256, 1024, 4096)  # of the integral, until it adds up
SMALL = 0.01  # share of the rise that may be left
MOST_ROWS = 2**18  # nodes and edges of occluded copies at once


@dataclass(frozen=True, eq=False)
class Explanation:
    """Shares in the log-odds of the answered class; positive: it speaks for the class."""

    graph: str  # its id
    answer: str
    probability: float
    nodes: pd.DataFrame  # node, occlusion, gradients
    edges: pd.DataFrame  # source, target, occlusion, gradients; each edge once
    missed: float | None  # what integrated gradients leave of f(x) − f(0), as a share of it; None of kernels

    def __repr__(self) -> str:
        sizes = f"{len(self.nodes)} nodes, {len(self.edges)} edges"
        return f"Explanation(graph {self.graph}: {self.answer}, p = {self.probability:.3f}, {sizes})"


def explain_graph(run: TrainedRun, graph: GraphDataset) -> Explanation:
    """Explain the answer of a run for one graph, with the features of its training data."""
    if len(graph) != 1:
        raise DataError(f"one graph is explained at a time, got {len(graph)}")
    answers = run.answer(graph)
    answer = int(answers.probabilities[0].argmax())
    pairs, pair_of_edge = undirected(graph)
    whole, without_edge, without_node = occlusion(run, graph, answer, pair_of_edge, len(pairs))
    nodes = {"node": range(len(without_node)), "occlusion": (whole - without_node).numpy()}
    edges = {"source": pairs[:, 0].numpy(), "target": pairs[:, 1].numpy()}
    edges |= {"occlusion": (whole - without_edge).numpy()}
    missed = None
    networks = [(fold, fold.model) for fold in run.folds if isinstance(fold.model, nn.Module)]
    if networks:
        shares = [integrated_gradients(fold, model, graph, answer) for fold, model in networks]
        of_nodes, of_directed = (
            torch.stack(part).mean(dim=0) for part in list(zip(*shares, strict=True))[:2]
        )
        of_edges = torch.zeros(len(pairs), dtype=torch.float64).index_add_(0, pair_of_edge, of_directed)
        nodes["gradients"], edges["gradients"] = of_nodes.numpy(), of_edges.numpy()
        total = sum(share[2] for share in shares) / len(shares)
        missed = abs(total - float(of_nodes.sum() + of_edges.sum())) / max(abs(total), 1e-12)
    return Explanation(
        graph=graph.names[0],
        answer=run.class_names[answer],
        probability=float(answers.probabilities[0, answer]),
        nodes=pd.DataFrame(nodes),
        edges=pd.DataFrame(edges),
        missed=missed,
    )


def undirected(graph: GraphDataset) -> tuple[Tensor, Tensor]:
    """Pairs of joined nodes (P, 2), and the pair of each directed edge (E,)."""
    ends = torch.stack([graph.src, graph.dst], dim=1).cpu().sort(dim=1).values
    return torch.unique(ends, dim=0, return_inverse=True)


def log_odds(run: TrainedRun, dataset: GraphDataset, answer: int) -> Tensor:
    """(G,) mean over folds of the log-odds of a class, at the fold's temperature."""
    values = [margin(fold.logits(dataset).double() / (fold.temperature or 1.0), answer) for fold in run.folds]
    return torch.stack(values).mean(dim=0)


def occlusion(
    run: TrainedRun, graph: GraphDataset, answer: int, pair_of_edge: Tensor, pairs: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-odds of the graph, of the graph without each edge (P,), and without each node (N,)."""
    size = graph.info.node_dim and len(graph.node_feats)
    all_nodes, all_edges = torch.ones(size, dtype=torch.bool), torch.ones(len(graph.src), dtype=torch.bool)
    kept = [(all_nodes, all_edges)]
    kept += [(all_nodes, pair_of_edge != pair) for pair in range(pairs)]
    for node in range(size):
        rest = torch.arange(size) != node
        kept.append((rest, rest[graph.src] & rest[graph.dst]))
    vocabulary = run.folds[0].vocabulary
    at_once = max(1, MOST_ROWS // (size + len(graph.src) + 1))
    values = [
        log_odds(run, parts_of(graph, kept[i : i + at_once], vocabulary), answer)
        for i in range(0, len(kept), at_once)
    ]
    found = torch.cat(values)
    return found[0], found[1 : 1 + pairs], found[1 + pairs :]


def parts_of(
    graph: GraphDataset, kept: list[tuple[Tensor, Tensor]], vocabulary: Vocabulary | None
) -> GraphDataset:
    """A dataset of parts of one graph, each given by masks of nodes and of edges. Degrees are counted anew."""
    src, dst, nodes, edges, first = [], [], [], [], 0
    for of_nodes, of_edges in kept:
        number = of_nodes.cumsum(0) - 1 + first
        src.append(number[graph.src[of_edges]])
        dst.append(number[graph.dst[of_edges]])
        nodes.append(of_nodes.nonzero()[:, 0])
        edges.append(of_edges.nonzero()[:, 0])
        first += len(nodes[-1])
    sizes = (torch.tensor([0] + [len(x) for x in part]).cumsum(0) for part in (nodes, edges))
    whole_src, whole_dst = torch.cat(src), torch.cat(dst)
    node_feats = graph.node_feats[torch.cat(nodes)]
    if vocabulary is not None and vocabulary.node.source == "degree":
        degrees = whole_dst.bincount(minlength=first).numpy()
        node_feats = torch.from_numpy(vocabulary.node.encode(RawColumns(first, labels=degrees[:, None]))[0])
    node_offsets, edge_offsets = sizes
    return replace(
        graph,
        info=replace(graph.info, graphs=len(kept)),
        labels=torch.full((len(kept),), -1),
        node_offsets=node_offsets,
        edge_offsets=edge_offsets,
        src=whole_src,
        dst=whole_dst,
        node_feats=node_feats,
        edge_feats=graph.edge_feats[torch.cat(edges)],
        digest="",
        ids=(),
        splits=(),
        smiles=(),
    )


def integrated_gradients(
    fold: TrainedFold, model: nn.Module, graph: GraphDataset, answer: int
) -> tuple[Tensor, Tensor, float]:
    """Shares of nodes (N,) and directed edges (E,), and f(x) − f(0), which they add up to.

    By the model's public call: shorter ways hold sums of edge features as constants, and have no gradient there.
    The way from 0 is cut finer until what the shares leave is small: normalized features bend a score often.
    """
    prepared = fold.prepared(graph)
    size = len(prepared.node_feats) + len(prepared.src) + 1
    for steps in STEPS:
        at_once = min(steps, max(1, MOST_ROWS // size))
        alphas = (torch.arange(steps, device=fold.device) + 0.5) / steps  # midpoints
        parts = [along(fold, model, prepared, answer, part) for part in alphas.split(at_once)]
        nodes, edges = (torch.stack(part).sum(dim=0) / steps for part in list(zip(*parts, strict=True))[:2])
        rise = parts[0][2]
        if abs(rise - float(nodes.sum() + edges.sum())) <= SMALL * abs(rise):
            break
    return nodes, edges, rise


def along(
    fold: TrainedFold, model: nn.Module, prepared: GraphDataset, answer: int, alphas: Tensor
) -> tuple[Tensor, Tensor, float]:
    """Σ over α of x ∇f(αx), for nodes and directed edges; and f(x) − f(0)."""
    steps = len(alphas)
    batch = assemble(prepared, torch.zeros(steps, dtype=torch.int64))
    node_feats = batch.node_feats
    if isinstance(model, ColorEmbedding):  # a colour's number is no quantity; what is learnt for it is
        node_feats, model = model.features(node_feats).detach(), model.model

    def f(nodes: Tensor, edges: Tensor) -> Tensor:
        return margin(model(batch.graph, nodes, edges).double() / (fold.temperature or 1.0), answer)

    whole = (node_feats, batch.edge_feats)
    scaled = [
        (feats * alphas.repeat_interleave(len(feats) // steps)[:, None]).requires_grad_() for feats in whole
    ]
    gradients = torch.autograd.grad(f(*scaled).sum(), scaled, allow_unused=True)
    shares = []
    for feats, gradient in zip(whole, gradients, strict=True):
        total = torch.zeros_like(feats) if gradient is None else feats * gradient
        shares.append(total.double().sum(dim=1).view(steps, -1).sum(dim=0).cpu())
    with torch.no_grad():
        rise = f(*whole)[0] - f(*(0 * feats for feats in whole))[0]
    return shares[0], shares[1], float(rise)


def one_graph(dataset: GraphDataset, number: int) -> GraphDataset:
    """One graph of a dataset, alone."""
    nodes = slice(*dataset.node_offsets[number : number + 2].tolist())
    edges = slice(*dataset.edge_offsets[number : number + 2].tolist())

    def own(values: tuple[str, ...]) -> tuple[str, ...]:
        return values[number : number + 1]

    return replace(
        dataset,
        info=replace(dataset.info, graphs=1),
        labels=dataset.labels[number : number + 1],
        node_offsets=torch.tensor([0, nodes.stop - nodes.start]),
        edge_offsets=torch.tensor([0, edges.stop - edges.start]),
        src=dataset.src[edges] - nodes.start,
        dst=dataset.dst[edges] - nodes.start,
        node_feats=dataset.node_feats[nodes],
        edge_feats=dataset.edge_feats[edges],
        digest="",
        ids=(dataset.names[number],),
        splits=own(dataset.splits),
        smiles=own(dataset.smiles),
    )
