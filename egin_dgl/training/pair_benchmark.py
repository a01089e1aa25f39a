"""Which pairs of graphs a model distinguishes: with random weights, and trained to separate each pair.

All computation is in float64. A model of the zoo computes equal embeddings for graphs that it cannot distinguish, whatever its
weights, up to rounding: sums in another order differ by about 1e-15 of the largest value. Graphs that it can distinguish
differ for almost all weights. `TOLERANCE` lies between the two, with several powers of ten on either side.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.loader import Batch, assemble
from egin_dgl.ewl.pairs import GraphPair, exact_verdicts, pairs_to_dataset, permute_nodes
from egin_dgl.models.dispatch import embed_batch, forward_batch
from egin_dgl.models.model import GraphModel
from egin_dgl.training.precise_bn import update_bn_stats

TOLERANCE = 1e-9  # of the largest value of the embeddings
MARGIN = 1.0  # between the logits of the two graphs after training
COPIES = 2  # of each graph, with permuted nodes
CHECK_EVERY = 10  # training steps

MakeModel = Callable[[DatasetInfo], GraphModel]


@dataclass(frozen=True)
class PairResult:
    """Whether a model, or a reference, distinguishes a pair."""

    model: str  # name in tables
    category: str
    number: int  # of the pair in its category
    untrained: bool
    trained: bool | None = None  # None: not trained
    distance: float = (
        math.nan
    )  # of the embeddings, largest over initialisations, in terms of the largest value
    noise: float = math.nan  # the same between copies of a graph


def reference_results(pairs: Sequence[GraphPair]) -> list[PairResult]:
    """What refinement distinguishes, exactly."""
    results = []
    for pair in pairs:
        verdicts = exact_verdicts(pair)
        results += [PairResult(name, pair.category, pair.number, bool(v)) for name, v in verdicts.items()]
    return sorted(results, key=lambda result: list(verdicts).index(result.model)) if pairs else []


def model_results(
    pairs: Sequence[GraphPair],
    makers: Mapping[str, MakeModel],
    initializations: int = 3,
    steps: int = 50,
    seed: int = 0,
) -> Iterator[PairResult]:
    """The results of every model on every pair, one after the other.

    Untrained, a pair is distinguished if its embeddings differ under one of several random initialisations. Trained, it is
    if a model, trained for at most `steps` steps on this pair alone, separates the logits of the two graphs. In both cases no
    copy with permuted nodes may differ from its graph.
    """
    info, batches = make_batches(pairs, seed)
    for make in makers.values():
        name = make(info).name
        for pair, batch in zip(pairs, batches, strict=True):
            gaps = []
            for number in range(initializations):
                torch.manual_seed(seed + number)
                gaps.append(embedding_gap(randomize(make(info).double()).eval(), batch))
            distance, noise = map(max, zip(*gaps, strict=True))
            trained = None
            if steps:
                torch.manual_seed(seed)
                trained = fit_pair(make(info).double(), batch, steps)
            untrained = distance > TOLERANCE >= noise
            yield PairResult(name, pair.category, pair.number, untrained, trained, distance, noise)


def make_batches(pairs: Sequence[GraphPair], seed: int) -> tuple[DatasetInfo, list[Batch]]:
    """A batch for each pair, first and second graph in turn: the graphs themselves, then copies with permuted nodes."""
    rng = np.random.default_rng(seed)
    graphs = []
    for pair in pairs:
        both = [pair.first, pair.second]
        graphs += [*both, *(permute_nodes(graph, rng) for _ in range(COPIES) for graph in both)]
    dataset = pairs_to_dataset(graphs).with_training_statistics(range(len(graphs)))
    dataset = dataset.with_features(dataset.node_feats.double(), dataset.edge_feats.double())
    return dataset.info, [
        assemble(dataset, numbers) for numbers in torch.arange(len(graphs)).chunk(len(pairs))
    ]


def randomize(model: GraphModel) -> GraphModel:
    """Move all weights, biases as well: with biases of zero, a network of ReLUs cannot distinguish x twice from 2x once."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


@torch.no_grad()
def embedding_gap(model: nn.Module, batch: Batch) -> tuple[float, float]:
    """Distance of the embeddings of the two graphs, and the largest between copies of one graph, both relative."""
    vectors = embed_batch(model, batch)
    return gaps(vectors / vectors.abs().max().clamp(min=1e-30))


def gaps(vectors: Tensor) -> tuple[float, float]:
    """Largest difference between the two graphs of a batch, and between copies of the same graph: (2 + 2 · COPIES, D)."""
    first, second = vectors[::2], vectors[1::2]
    within = torch.cat([first - first[:1], second - second[:1]])
    return (first[0] - second[0]).abs().max().item(), within.abs().max().item()


def fit_pair(model: GraphModel, batch: Batch, steps: int) -> bool:
    """Train a model to separate the two graphs of a batch, until it does or `steps` are taken; return whether it does."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, steps + 1):
        model.train()
        optimizer.zero_grad()
        cross_entropy(forward_batch(model, batch), batch.labels).backward()
        optimizer.step()
        if (step % CHECK_EVERY == 0 or step == steps) and is_separated(model, batch):
            return True
    return False


@torch.no_grad()
def is_separated(model: nn.Module, batch: Batch) -> bool:
    """Whether all graphs of a batch are classified correctly by a margin, and copies of a graph alike."""
    update_bn_stats(model, [batch], partial(forward_batch, fast=True))
    logits = forward_batch(model, batch)
    score = (logits[:, 1] - logits[:, 0]).unsqueeze(1)
    between, within = gaps(score)
    is_correct = bool((logits.argmax(1) == batch.labels).all())
    return is_correct and between > MARGIN and within <= TOLERANCE * logits.abs().max().item()
