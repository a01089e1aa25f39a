r"""Precise BN: BatchNorm statistics of all training rows for the weights that are evaluated.

.. math:: \mu = \tfrac1n \sum_r x_r, \quad \sigma^2 = \tfrac1n \sum_r (x_r - \mu)^2

over the n rows (nodes or edges) of the training set, where the input of each layer is computed with the precise
statistics of the layers before it, without dropout. If the training set fits in one batch, one pass sets all layers, each
when its input arrives. Otherwise each pass over all batches sets the next layer: memory is bounded by a batch, and the
result depends on neither their sizes nor their order. `torch.optim.swa_utils.update_bn` needs one pass, but averages
the variances of batches around their own means, under layers whose statistics still change.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import GraphDataset, Indices
from egin_dgl.data.loader import ChainLoader, GraphLoader

MAX_ROWS = 2**18  # nodes and edges of a batch, and of a sample
MAX_PASS_ROWS = (
    2**22
)  # nodes and edges that one pass takes, about 1 GB; statistics of more are those of a sample
Batches: TypeAlias = GraphLoader | ChainLoader | Sequence


class Moments:
    """Mean and variance of rows that arrive in chunks, combined stably (Chan, Golub, LeVeque, 1979)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = self.squares = torch.zeros(())

    def add(self, rows: Tensor) -> None:
        if len(rows) == 0:
            return
        rows = rows.double()
        mean = rows.mean(dim=0)
        squares = (rows - mean).square_().sum(dim=0)
        total = self.count + len(rows)
        delta = mean - self.mean
        self.mean = self.mean + delta * (len(rows) / total)
        self.squares = self.squares + squares + delta.square() * (self.count * len(rows) / total)
        self.count = total

    def assign_to(self, layer: nn.BatchNorm1d) -> None:
        """Set the running statistics of the layer; without any row it is left unchanged."""
        if self.count and layer.running_mean is not None and layer.running_var is not None:
            layer.running_mean.copy_(self.mean)
            layer.running_var.copy_(self.squares / self.count)


class StopForward(Exception):
    """Ends a forward pass at the layer whose statistics are being computed."""


@torch.no_grad()
def update_bn_stats(model: nn.Module, batches: Batches, call: Callable[[nn.Module, object], object]) -> None:
    """Set the running statistics of every BatchNorm layer in `model` to those of the rows of `batches`.

    `call(model, batch)` is a forward pass. The model is left in evaluation mode.
    """
    layers = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d) and m.running_mean is not None]
    model.eval()
    done: set[nn.BatchNorm1d] = set()
    current: dict[nn.BatchNorm1d, Moments] = {}  # the layer of this pass

    def on_input(layer: nn.BatchNorm1d, inputs: tuple[Tensor, ...]) -> None:
        if layer in done:
            return
        if not current:
            current[layer] = Moments()
        if layer in current:
            current[layer].add(inputs[0])
        if len(batches) > 1:
            raise StopForward
        assign()

    def assign() -> None:
        for layer, moments in current.items():
            moments.assign_to(layer)
        done.update(current)
        current.clear()

    hooks = [layer.register_forward_pre_hook(on_input) for layer in layers]
    try:
        while len(done) < len(layers):
            for batch in batches:
                with suppress(StopForward):
                    call(model, batch)
            if not current:  # the remaining layers are unused, or the single batch has set all
                break
            assign()
    finally:
        for hook in hooks:
            hook.remove()


def bounded_batches(dataset: GraphDataset, graphs: Indices, max_rows: int | None = None) -> ChainLoader:
    """The graphs in order, in batches of at most `max_rows` nodes and edges, or of a single larger graph.

    Default: MAX_ROWS.
    """
    indices = torch.as_tensor(graphs, dtype=torch.int64)
    lengths = list(chunk_lengths(row_counts(dataset, indices), max_rows or MAX_ROWS))
    return ChainLoader([GraphLoader(dataset, chunk, len(chunk)) for chunk in indices.split(lengths)])


def sample_graphs(
    dataset: GraphDataset, graphs: Indices, max_rows: int, generator: torch.Generator
) -> Tensor:
    """All graphs, or where these have more than `max_rows` nodes and edges as many drawn at random; in their order."""
    indices = torch.as_tensor(graphs, dtype=torch.int64)
    if int(row_counts(dataset, indices).sum()) <= max_rows:
        return indices
    shuffled = indices[torch.randperm(len(indices), generator=generator)]
    length = next(chunk_lengths(row_counts(dataset, shuffled), max_rows))
    return shuffled[:length].sort().values


def row_counts(dataset: GraphDataset, graphs: Tensor) -> Tensor:
    return (dataset.node_offsets.diff() + dataset.edge_offsets.diff()).cpu()[graphs]


def chunk_lengths(sizes: Tensor, max_rows: int) -> Iterator[int]:
    """Cut sizes (G,) into consecutive chunks whose sum is at most `max_rows`, or that are a single larger element."""
    ends = sizes.cumsum(0)
    start = before = 0
    while start < len(sizes):
        end = max(start + 1, int(torch.searchsorted(ends, before + max_rows, right=True)))
        yield end - start
        start, before = end, int(ends[end - 1])
