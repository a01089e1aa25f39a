r"""BatchNorm statistics of a batch of any size, and logits of others, in one pass over each.

A layer is computed for all rows of a batch, a chunk of rows at a time, before the next layer begins: two activations of
every distinct row are kept, and what is larger exists for one chunk only. With the share :math:`w_c`, the mean
:math:`\mu_c` and the variance :math:`\sigma_c^2` of each chunk,

.. math:: \mu = \sum_c w_c \mu_c, \quad \sigma^2 = \sum_c w_c \{\sigma_c^2 + (\mu_c - \mu)^2\}

which the choice of chunks changes by rounding only (Chan, Golub, LeVeque, 1979).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from egin_dgl.data.loader import Batch
from egin_dgl.fast.dedup import RowSums, find_distinct_rows
from egin_dgl.fast.fused_blocks import NormBlock, regroup
from egin_dgl.fast.fused_step import FusedLayer, FusedNetwork
from egin_dgl.fast.layers import FastEGINM, FastLayer
from egin_dgl.fast.sparse_matrix import CSR
from egin_dgl.fast.sparse_sums import BatchSums, Sums, batch_sums, multiply
from egin_dgl.models.dispatch import ShareMoments

SharePart: TypeAlias = Callable[[Tensor, Tensor], tuple[int, Tensor, Tensor]]  # `ShareMoments` of a batch
CHUNK_ROWS = 2**14  # 4 MB of 64 features, which a processor's cache holds


@dataclass(frozen=True)
class RowChunk:
    """Some of the rows of a depth."""

    rows: slice
    weight: float  # share of these rows in the mean over all nodes
    shares: Tensor | None  # (R, 1) share of each row in the mean over the chunk; None: equal shares

    def mean(self, rows: Tensor) -> Tensor:
        return rows.mean(0) if self.shares is None else (rows * self.shares).sum(0)


def make_chunks(num_rows: int, shares: Tensor | None) -> list[RowChunk]:
    """Consecutive chunks of rows, given the share (U, 1) of each row; None: equal shares. At least one chunk."""
    if num_rows <= CHUNK_ROWS:
        return [RowChunk(slice(0, num_rows), 1.0, shares)]
    chunks = []
    for start in range(0, num_rows, CHUNK_ROWS):
        rows = slice(start, min(start + CHUNK_ROWS, num_rows))
        if shares is None:
            chunks.append(RowChunk(rows, (rows.stop - start) / num_rows, None))
        else:
            weight = float(shares[rows].double().sum())
            chunks.append(RowChunk(rows, weight, shares[rows] / weight))
    return chunks


class LayerPlan:
    """How one layer is computed on one batch: everything that does not depend on weights.

    Args:
        layer: any of its class.
        sums: of the rows after the layer.
        num_rows, shares: of the rows after the layer; see `make_chunks`.
        self_rows: the row of each row itself before the layer. Default: the same.
    """

    def __init__(
        self,
        layer: FastLayer,
        sums: Sums,
        num_rows: int,
        shares: Tensor | None = None,
        self_rows: Tensor | None = None,
    ):
        self.sums, self.num_rows, self.self_rows = sums, num_rows, self_rows
        self.chunks = make_chunks(num_rows, shares)
        self.neighbor_sum = layer.neighbor_sum(sums)
        self.groups = 1  # rows of the sum per row of the layer
        self.csrs: list[CSR] | None = None  # the rows of each chunk, where the sum is a sparse matrix
        if (csr := self.neighbor_sum.csr) is not None:
            self.groups = len(csr.starts) // max(num_rows, 1)
            bounds = [
                (self.groups * chunk.rows.start, self.groups * chunk.rows.stop) for chunk in self.chunks
            ]
            self.csrs = [csr] if len(bounds) == 1 else [slice_rows(csr, *bound) for bound in bounds]

    def neighbor_sums(self, h: Tensor) -> Iterator[Tensor]:
        """The sums of each chunk, (R, groups · D)."""
        if self.csrs is None:
            whole = self.neighbor_sum.apply(h)
            yield from (whole[chunk.rows] for chunk in self.chunks)
        else:
            yield from (multiply(csr, h).view(-1, self.groups * h.shape[1]) for csr in self.csrs)

    def self_feats(self, h: Tensor, chunk: RowChunk) -> Tensor:
        """The features before the layer of the rows of a chunk."""
        return h[chunk.rows] if self.self_rows is None else h.index_select(0, self.self_rows[chunk.rows])


class BatchPlan:
    """How a network is computed on one batch, on its distinct rows where these are few."""

    def __init__(self, sums: BatchSums, layers: Sequence[FastLayer]):
        self.members, self.feats = sums.members, sums.node_feats
        is_sparse = all(layer.neighbor_sum(sums).csr is not None for layer in layers)
        self.depths = find_distinct_rows(sums, len(layers)) if is_sparse else None
        if self.depths is None:
            self.layers = [LayerPlan(layer, sums, len(self.feats)) for layer in layers]
            return
        self.feats = self.feats.index_select(0, self.depths[0].nodes)
        self.layers = []
        for layer, before, after in zip(layers, self.depths[:-1], self.depths[1:], strict=True):
            rows = RowSums(sums, before, after)
            self.layers.append(LayerPlan(layer, rows, len(after.nodes), after.shares, rows.self_rows))

    def pool(self, depth: int, h: Tensor) -> Tensor:
        """Sums over the nodes of each graph, from the rows of a depth: (U, D) -> (B, D)."""
        columns = self.members.columns if self.depths is None else self.depths[depth].row
        return multiply(self.members._replace(columns=columns), h)


def slice_rows(csr: CSR, start: int, stop: int) -> CSR:
    """Consecutive rows of a sparse matrix."""
    first = int(csr.starts[start])
    last = int(csr.starts[stop]) if stop < len(csr.starts) else len(csr.columns)
    weights = None if csr.weights is None else csr.weights[first:last]
    return CSR(csr.starts[start:stop] - first, csr.columns[first:last], weights)


_PLANS: WeakKeyDictionary[Batch, dict[tuple[type[FastLayer], ...], BatchPlan]] = WeakKeyDictionary()


def batch_plan(batch: Batch, network: FusedNetwork) -> BatchPlan:
    """The plan of a batch for layers of these classes, made once."""
    layers = [layer.layer for layer in network.layers]
    plans, key = _PLANS.setdefault(batch, {}), tuple(map(type, layers))
    if key not in plans:
        plans[key] = BatchPlan(batch_sums(batch), layers)
    return plans[key]


def forward_precise(
    network: FusedNetwork, train: Batch, others: Sequence[Batch], share_moments: ShareMoments
) -> list[Tensor]:
    """Set every BatchNorm to the statistics of a batch, and return the logits of others in evaluation mode."""
    plan = batch_plan(train, network)
    h = plan.feats
    share = partial(share_moments, len(train.node_feats))
    for layer, layer_plan in zip(network.layers, plan.layers, strict=True):
        h = forward_layer(layer, layer_plan, h, share)
    logits = []
    for batch in others:
        plan = batch_plan(batch, network)
        h = plan.feats
        pooled = [plan.pool(0, h)]
        for depth, layer in enumerate(network.layers, start=1):
            h = forward_layer(layer, plan.layers[depth - 1], h)
            pooled.append(plan.pool(depth, h))
        logits.append(network.heads.forward(batch_sums(batch), pooled))
    return logits


def forward_layer(
    layer: FusedLayer, plan: LayerPlan, h: Tensor, share_moments: SharePart | None = None
) -> Tensor:
    """The rows after a layer from those before: (U, D) -> (V, H). Moments that are to be shared are set as statistics."""
    inputs: Iterable[Tensor] = mlp_inputs(layer.layer, plan, h)
    for number, block in enumerate(layer.blocks):
        weight = regroup(block.weight, -1, plan.groups) if number == 0 else block.weight
        h = forward_linear(block, weight, plan, inputs, share_moments)
        inputs = map(block.normalize_, [h[chunk.rows] for chunk in plan.chunks])
    for _ in inputs:  # normalizes the chunks of h in place
        pass
    return h


def mlp_inputs(layer: FastLayer, plan: LayerPlan, h: Tensor) -> Iterator[Tensor]:
    """The input of the MLP of a layer, for each chunk."""
    if isinstance(layer, FastEGINM):
        whole = layer.sum_tuples(h, plan.sums.tuples)
        yield from (whole[chunk.rows] for chunk in plan.chunks)
        return
    edge_part = layer.edge_part(plan.sums)
    for chunk, x in zip(plan.chunks, plan.neighbor_sums(h), strict=True):
        if layer.has_eps:
            h_self = plan.self_feats(h, chunk)
            x = x.add_((layer.eps * h_self).repeat(1, plan.groups))
        yield x if edge_part is None else torch.cat([x, edge_part[chunk.rows]], dim=1)


def forward_linear(
    block: NormBlock,
    weight: Tensor,
    plan: LayerPlan,
    inputs: Iterable[Tensor],
    share_moments: SharePart | None,
) -> Tensor:
    """x W^T of all chunks x, whose mean and variance become the statistics of the block: (V, H)."""
    linear = weight.new_empty(plan.num_rows, len(weight))
    means, variances = [], []
    for chunk, x in zip(plan.chunks, inputs, strict=True):
        rows = torch.mm(x, weight.t(), out=linear[chunk.rows])
        if share_moments:
            means.append(chunk.mean(rows))
            variances.append(chunk.mean((rows - means[-1]).square_()))
    if share_moments:
        own = combine_moments([chunk.weight for chunk in plan.chunks], means, variances)
        _, mean, variance = share_moments(*own)
        block.set_statistics(mean, variance)
    return linear


def combine_moments(
    weights: list[float], means: list[Tensor], variances: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Mean and variance over all chunks from those of each, which have these shares."""
    if len(weights) == 1:
        return means[0], variances[0]
    share = torch.tensor(weights, dtype=torch.float64, device=means[0].device).unsqueeze(1)
    each = torch.stack(means).double()
    mean = (share * each).sum(0)
    variance = (share * (torch.stack(variances).double() + (each - mean).square())).sum(0)
    return mean.to(means[0].dtype), variance.to(means[0].dtype)
