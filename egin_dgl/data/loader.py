"""From flat tensors to batches, assembled by indexing on the dataset's device.

Several batches are gathered at once and each is a slice of the result, so that a batch costs little more than some slices.
Attributes of a batch are computed on first access: a model that never reads the graph does not pay for it.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, repeat
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from egin_dgl.backend import import_dgl, why_not_dgl
from egin_dgl.data.dataset import GraphDataset, Indices
from egin_dgl.data.edge_list import EdgeList, Graph
from egin_dgl.data.ragged import Offsets, row_positions

Values = TypeVar("Values", Tensor, np.ndarray)
MAX_ROWS = 2**18  # nodes and edges gathered at once: many batches of small graphs, in bounded memory


class RowLayout:
    """Positions of the rows of chosen graphs in a flat tensor, and their ranges in the batches of these graphs."""

    def __init__(self, offsets: Offsets, graphs: Tensor, on_host: np.ndarray, batch_size: int):
        ends = (offsets.on_host[on_host + 1] - offsets.on_host[on_host]).cumsum()
        self.total = int(ends[-1]) if len(ends) else 0
        self.positions, self.sizes = row_positions(offsets.on_device, graphs, self.total)
        # Ranges of batches are computed on the host, which must not wait for a GPU.
        self.bounds = [0, *ends[batch_size - 1 : -1 : batch_size].tolist(), self.total]
        starts = self.sizes.cumsum(0) - self.sizes
        first_graphs = torch.arange(len(graphs), device=starts.device) // batch_size * batch_size
        self.starts = starts - starts[first_graphs]  # of each graph, within its batch

    def repeat(self, values: Tensor) -> Tensor:
        """Repeat the value of each graph for each of its rows."""
        return values.repeat_interleave(self.sizes, output_size=self.total)

    def slice(self, rows: Tensor, batch: int) -> Tensor:
        """The rows that belong to one batch."""
        return rows[self.bounds[batch] : self.bounds[batch + 1]]


class Chunk:
    """Graphs of several batches; each flat tensor is gathered once for all of them, on first access."""

    def __init__(self, dataset: GraphDataset, graphs: Tensor, on_host: np.ndarray, batch_size: int):
        self.dataset, self.graphs, self.on_host, self.batch_size = dataset, graphs, on_host, batch_size
        self._layouts: dict[Offsets, RowLayout] = {}
        # By id of the source tensor, which is held so that its id is not reused.
        self._gathered: dict[int, tuple[Tensor, Tensor]] = {}

    def layout(self, offsets: Offsets) -> RowLayout:
        if offsets not in self._layouts:
            self._layouts[offsets] = RowLayout(offsets, self.graphs, self.on_host, self.batch_size)
        return self._layouts[offsets]

    def rows(self, tensor: Tensor, offsets: Offsets, batch: int) -> Tensor:
        """The rows of a flat tensor that belong to one batch."""
        layout = self.layout(offsets)
        if id(tensor) not in self._gathered:
            self._gathered[id(tensor)] = tensor, tensor.index_select(0, layout.positions)
        return layout.slice(self._gathered[id(tensor)][1], batch)


class Batch:
    """B graphs as one, with N nodes and E edges: batch `number` of a chunk."""

    def __init__(self, chunk: Chunk, number: int):
        self.chunk, self.number = chunk, number
        self.graphs = self.per_graph(chunk.graphs)

    def rows(self, tensor: Tensor, offsets: Offsets) -> Tensor:
        """The rows of these graphs in a flat tensor over the dataset."""
        return self.chunk.rows(tensor, offsets, self.number)

    def per_graph(self, values: Values) -> Values:
        """The values of these graphs in a tensor or array with a row for each graph of the chunk."""
        first = self.number * self.chunk.batch_size
        return values[first : first + self.chunk.batch_size]

    @cached_property
    def labels(self) -> Tensor:
        """(B,)."""
        return self.chunk.dataset.labels[self.graphs]

    @cached_property
    def weights(self) -> Tensor | None:
        """(B,) of the graphs in the training loss; None: equal."""
        weights = self.chunk.dataset.weights
        return None if weights is None else weights.to(self.graphs.device)[self.graphs]

    @cached_property
    def node_feats(self) -> Tensor:
        """(N, D)."""
        return self.rows(self.chunk.dataset.node_feats, self.chunk.dataset.node_rows)

    @cached_property
    def edge_feats(self) -> Tensor:
        """(E, Q)."""
        return self.rows(self.chunk.dataset.edge_feats, self.chunk.dataset.edge_rows)

    @cached_property
    def num_nodes(self) -> Tensor:
        """(B,) nodes of each graph."""
        return self.per_graph(self.chunk.layout(self.chunk.dataset.node_rows).sizes)

    @cached_property
    def graph(self) -> Graph:
        """The batched graph, with nodes and edges in the order of the features: a DGLGraph where DGL can use the device."""
        dataset, layout = self.chunk.dataset, self.chunk.layout
        nodes, edges = layout(dataset.node_rows), layout(dataset.edge_rows)
        num_edges = self.per_graph(edges.sizes)
        # Number of a node in the batch = its number in the dataset + the shift of its graph.
        shift = self.per_graph(nodes.starts) - dataset.node_offsets[self.graphs]
        positions = edges.slice(edges.positions, self.number)
        shift = shift.repeat_interleave(num_edges, output_size=len(positions))
        ends = dataset.src[positions] + shift, dataset.dst[positions] + shift
        if why_not_dgl(shift.device):
            looped = int(dataset.looped_nodes[self.per_graph(self.chunk.on_host)].sum())
            return EdgeList(*ends, len(self.node_feats), self.num_nodes, num_edges, looped)
        graph = import_dgl().graph(ends, num_nodes=len(self.node_feats))
        graph.set_batch_num_nodes(self.num_nodes)
        graph.set_batch_num_edges(num_edges)
        return graph


def assemble(dataset: GraphDataset, graphs: Tensor) -> Batch:
    """The batch of these graphs, in this order."""
    return next(batches(dataset, graphs, max(len(graphs), 1)))


def batches(dataset: GraphDataset, graphs: Tensor, batch_size: int) -> Iterator[Batch]:
    """Batches of these graphs, in this order; the last one may be smaller."""
    on_host, graphs = graphs.cpu().numpy(), graphs.to(dataset.labels.device, non_blocking=True)
    # Of these graphs only: where a batch lies in memory may change the last digit of a product.
    offsets = dataset.node_rows.on_host, dataset.edge_rows.on_host
    mean_size = sum(int((o[on_host + 1] - o[on_host]).sum()) for o in offsets) / max(len(on_host), 1)
    chunk_size = max(1, int(MAX_ROWS / max(mean_size * batch_size, 1))) * batch_size
    for number, chosen in enumerate(graphs.split(chunk_size)):
        chunk = Chunk(dataset, chosen, on_host[number * chunk_size : (number + 1) * chunk_size], batch_size)
        yield from (Batch(chunk, batch) for batch in range(-(-len(chosen) // batch_size)))


class GraphLoader:
    """Batches of some graphs of a dataset.

    Iterating gives the graphs in order; these batches are made once. `shuffled` makes new batches for each epoch.

    Args:
        dataset: the graphs.
        indices: numbers of the graphs to load.
        batch_size: graphs of a batch; the last batch may be smaller.
    """

    def __init__(self, dataset: GraphDataset, indices: Indices, batch_size: int):
        self.dataset = dataset
        self.indices = torch.as_tensor(indices, dtype=torch.int64)
        self.batch_size = batch_size
        self._batches: list[Batch] | None = None

    def __len__(self) -> int:
        return -(-len(self.indices) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        if self._batches is None:
            self._batches = list(batches(self.dataset, self.indices, self.batch_size)) if len(self) else []
        return iter(self._batches)

    def shuffled(self, generator: torch.Generator, rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        """One epoch in random order; of each batch every `ranks`-th graph from `rank` on, which may be none of the last one."""
        order = self.indices[torch.randperm(len(self.indices), generator=generator)]
        if ranks == 1:
            return batches(self.dataset, order, self.batch_size)
        own = torch.arange(len(order)) % self.batch_size % ranks == rank
        share = batches(self.dataset, order[own], len(range(rank, self.batch_size, ranks)))
        empty = Batch(Chunk(self.dataset, order[:0].to(self.dataset.labels.device), order[:0].numpy(), 1), 0)
        return islice(chain(share, repeat(empty)), len(self))


class ChainLoader:
    """The batches of several loaders, one after the other."""

    def __init__(self, loaders: Sequence[GraphLoader]):
        self.loaders = loaders

    def __len__(self) -> int:
        return sum(map(len, self.loaders))

    def __iter__(self) -> Iterator[Batch]:
        return chain.from_iterable(self.loaders)
