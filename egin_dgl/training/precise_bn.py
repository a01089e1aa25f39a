r"""Precise BN: BatchNorm statistics of all training rows for the weights that are evaluated.

.. math:: \mu = \tfrac1n \sum_r x_r, \quad \sigma^2 = \tfrac1n \sum_r (x_r - \mu)^2

over the n rows (nodes or edges) of the training set, where the input of each layer is computed with the precise
statistics of the layers before it, without dropout. One forward pass sets all layers: the pass of each batch pauses at a
layer until the inputs of all batches have arrived there, so the result depends on neither their sizes nor their order. What is
kept is one activation per row. `torch.optim.swa_utils.update_bn` averages the variances of batches around their own
means, under layers whose statistics still change.

Accelerated models have a faster pass, `fast/precise_pass.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import GraphDataset, Indices
from egin_dgl.data.loader import ChainLoader, GraphLoader
from egin_dgl.models.dispatch import ShareMoments, own_moments
from egin_dgl.training.coroutine import Coroutine

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

    def assign_to(self, layer: nn.BatchNorm1d, share_moments: ShareMoments = own_moments) -> None:
        """Set the running statistics of the layer; without any row it is left unchanged."""
        if layer.running_mean is None or layer.running_var is None:
            return
        device, size = layer.running_mean.device, layer.num_features
        own = (moment.to(device).expand(size) for moment in (self.mean, self.squares / max(self.count, 1)))
        count, mean, variance = share_moments(self.count, *own)
        if count:
            layer.running_mean.copy_(mean)
            layer.running_var.copy_(variance)


def update_bn_stats(
    model: nn.Module,
    batches: Batches,
    call: Callable[[nn.Module, object], object],
    share_moments: ShareMoments = own_moments,
) -> None:
    """Set the running statistics of every BatchNorm layer in `model` to those of the rows of `batches`.

    `call(model, batch)` is a forward pass. The model is left in evaluation mode. `share_moments` adds the rows of batches that
    other processes have; all of them have at least one.
    """
    layers = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d) and m.running_mean is not None]
    if not layers:
        return
    model.eval()
    done: set[nn.BatchNorm1d] = set()
    arrived: dict[Coroutine, tuple[nn.BatchNorm1d, Tensor]] = {}  # paused passes: the layer, and its input
    running: list[Coroutine] = []

    def on_input(layer: nn.BatchNorm1d, inputs: tuple[Tensor, ...]) -> None:
        if layer not in done:
            arrived[running[0]] = layer, inputs[0]
            running[0].pause()

    @torch.no_grad()  # gradients are switched off for each thread
    def forward(batch: object) -> None:
        call(model, batch)

    passes = [Coroutine(partial(forward, batch)) for batch in batches]
    hooks = [layer.register_forward_pre_hook(on_input) for layer in layers]
    try:
        ready = passes
        while ready:
            for one in ready:
                running[:] = [one]
                one.advance()
            # All passes that wait for the same layer have its input now.
            layer = next(iter(arrived.values()))[0] if arrived else None
            ready = [one for one in passes if one in arrived and arrived[one][0] is layer]
            moments = Moments()
            for one in ready:
                moments.add(arrived.pop(one)[1])
            if layer is not None:
                moments.assign_to(layer, share_moments)
                done.add(layer)
    finally:
        for hook in hooks:
            hook.remove()
        for one in passes:
            one.stop()


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
