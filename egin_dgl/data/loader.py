"""From flat tensors to batches, assembled by indexing on the dataset's device.

Several batches are laid out at once and each is a window on them, so that a batch costs little more than some slices.
What a batch offers is made when first asked for: models that never look at the DGL graph do not pay for it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import dgl
import numpy as np
import torch
from torch import Tensor

from egin_dgl.data.csr import BlockCSR, Offsets
from egin_dgl.data.dataset import GraphDataset, Indices
from egin_dgl.data.ragged import row_places

# Nodes and edges laid out at once: enough that laying out costs little per batch, and bounded.
AT_ONCE = 2**18


class CSR(NamedTuple):
    """A sparse matrix by rows, as `torch.embedding_bag` takes it: the entries of row r begin at starts[r]."""

    starts: Tensor  # (R,) int32
    columns: Tensor  # (K,) int32
    weights: Tensor | None  # (K,), or None where all are one


class RowLayout:
    """Where the rows of chosen graphs lie in a flat tensor, and in the batches that the graphs are dealt to."""

    def __init__(self, offsets: Offsets, graphs: Tensor, on_host: np.ndarray, batch_size: int):
        ends = (offsets.on_host[on_host + 1] - offsets.on_host[on_host]).cumsum()
        self.total = int(ends[-1]) if len(ends) else 0
        self.positions, self.sizes = row_places(offsets.on_device, graphs, self.total)
        # Of the batches, and known on the host: a GPU is never asked how large they are.
        self.bounds = [0, *ends[batch_size - 1 : -1 : batch_size].tolist(), self.total]
        starts = self.sizes.cumsum(0) - self.sizes
        begins = torch.arange(len(graphs), device=starts.device) // batch_size * batch_size
        self.starts = starts - starts[begins]  # of each graph, within its batch

    def spread(self, values: Tensor) -> Tensor:
        """A value of each graph, repeated for each of its rows."""
        return values.repeat_interleave(self.sizes, output_size=self.total)

    def window(self, rows: Tensor, batch: int) -> Tensor:
        """The rows that belong to one batch."""
        return rows[self.bounds[batch] : self.bounds[batch + 1]]


class Chunk:
    """Graphs of some batches; each flat tensor is gathered once for all of them, when first asked for."""

    def __init__(self, dataset: GraphDataset, graphs: Tensor, on_host: np.ndarray, batch_size: int):
        self.dataset, self.graphs, self.on_host, self.batch_size = dataset, graphs, on_host, batch_size
        self.layouts: dict[Offsets, RowLayout] = {}
        self.made: dict[object, Tensor | tuple[Tensor | None, ...]] = {}

    def layout(self, offsets: Offsets) -> RowLayout:
        if offsets not in self.layouts:
            self.layouts[offsets] = RowLayout(offsets, self.graphs, self.on_host, self.batch_size)
        return self.layouts[offsets]

    def once(self, key: object, make: Callable):
        """What `make()` gives, made once for all batches."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def rows(self, tensor: Tensor, offsets: Offsets, batch: int) -> Tensor:
        """The rows of a flat tensor that belong to one batch."""
        layout = self.layout(offsets)
        gathered = self.once(id(tensor), lambda: tensor.index_select(0, layout.positions))
        return layout.window(gathered, batch)

    def bags(self, links: BlockCSR, batch: int) -> CSR:
        """One batch's part of a sparse matrix."""
        rows, entries, grid = (self.layout(offsets) for offsets in (links.rows, links.entries, links.grid))

        def gather() -> CSR:
            weights = links.weights
            return CSR(
                links.starts[rows.positions] + rows.spread(entries.starts.int()),
                links.columns[entries.positions] + entries.spread(grid.starts.int()),
                None if weights is None else weights[entries.positions],
            )

        starts, columns, weights = self.once(links, gather)
        columns = entries.window(columns, batch)
        return CSR(
            rows.window(starts, batch), columns, None if weights is None else entries.window(weights, batch)
        )


class Batch:
    """B graphs as one, with N nodes and E edges: the batch of this number in a chunk."""

    def __init__(self, chunk: Chunk, number: int):
        self.chunk, self.number, self.constants = chunk, number, chunk.dataset.constants
        self._made: dict[str, Any] = {}
        first = number * chunk.batch_size
        self.graphs = chunk.graphs[first : first + chunk.batch_size]

    def of_nodes(self, tensor: Tensor) -> Tensor:
        """The rows of these graphs in a tensor with a row for each node of the dataset."""
        return self.chunk.rows(tensor, self.constants.nodes, self.number)

    def bags(self, pair: tuple[BlockCSR, BlockCSR]) -> tuple[CSR, CSR]:
        """A sparse matrix of the dataset's constants and its transpose, for these graphs."""
        links, transposed = pair
        bags = self.chunk.bags(links, self.number)
        return bags, bags if transposed is links else self.chunk.bags(transposed, self.number)

    def once(self, key: str, make: Callable[["Batch"], Any]) -> Any:
        """What `make(batch)` gives, made once."""
        if key not in self._made:
            self._made[key] = make(self)
        return self._made[key]

    @cached_property
    def labels(self) -> Tensor:
        """(B,)."""
        return self.chunk.dataset.labels[self.graphs]

    @cached_property
    def node_feats(self) -> Tensor:
        """(N, D)."""
        return self.of_nodes(self.chunk.dataset.node_feats)

    @cached_property
    def edge_feats(self) -> Tensor:
        """(E, Q)."""
        return self.chunk.rows(self.chunk.dataset.edge_feats, self.constants.edges, self.number)

    @cached_property
    def sizes(self) -> Tensor:
        """(B,) nodes of each graph."""
        return self._of_graphs(self._nodes.sizes)

    @cached_property
    def members(self) -> CSR:
        """Row b sums over the nodes of graph b."""
        columns = torch.arange(len(self.node_feats), dtype=torch.int32, device=self.graphs.device)
        return CSR(self._of_graphs(self._nodes.starts).int(), columns, None)

    @cached_property
    def graph_of_node(self) -> Tensor:
        """(N,) in 0..B-1."""
        layout, size = self._nodes, self.chunk.batch_size

        def spread() -> Tensor:
            return layout.spread(torch.arange(len(self.chunk.graphs), device=self.graphs.device) % size)

        return layout.window(self.chunk.once("graph of node", spread), self.number)

    @cached_property
    def graph(self) -> dgl.DGLGraph:
        """The graphs as one of DGL's, its nodes and edges in the order of the features."""
        dataset, nodes, edges = self.chunk.dataset, self._nodes, self._edges
        # A node's number in the batch = its number in the dataset + where its graph moved.
        moved = nodes.starts - dataset.node_offsets[self.chunk.graphs]
        shift = edges.window(self.chunk.once("shift", lambda: edges.spread(moved)), self.number)
        places = edges.window(edges.positions, self.number)
        graph = dgl.graph(
            (dataset.src[places] + shift, dataset.dst[places] + shift), num_nodes=len(self.node_feats)
        )
        graph.set_batch_num_nodes(self.sizes)
        graph.set_batch_num_edges(self._of_graphs(edges.sizes))
        return graph

    @property
    def _nodes(self) -> RowLayout:
        return self.chunk.layout(self.constants.nodes)

    @property
    def _edges(self) -> RowLayout:
        return self.chunk.layout(self.constants.edges)

    def _of_graphs(self, values: Tensor) -> Tensor:
        first = self.number * self.chunk.batch_size
        return values[first : first + self.chunk.batch_size]


def assemble(dataset: GraphDataset, graphs: Tensor) -> Batch:
    """The batch of these graphs, in this order."""
    return next(batches(dataset, graphs, max(len(graphs), 1)))


def batches(dataset: GraphDataset, graphs: Tensor, batch_size: int) -> Iterator[Batch]:
    """Batches of these graphs, in this order; the last one may be smaller."""
    mean_size = (len(dataset.dst) + len(dataset.node_feats)) / max(len(dataset), 1)
    at_once = max(1, int(AT_ONCE / max(mean_size * batch_size, 1))) * batch_size
    on_host, graphs = graphs.cpu().numpy(), graphs.to(dataset.labels.device)
    for start, part in enumerate(graphs.split(at_once)):
        chunk = Chunk(dataset, part, on_host[start * at_once : (start + 1) * at_once], batch_size)
        yield from (Batch(chunk, number) for number in range(-(-len(part) // batch_size)))


class GraphLoader:
    """Batches of some graphs of a dataset.

    In order, they are assembled once and kept; shuffled, they are made anew each epoch from the given generator.
    """

    def __init__(self, dataset: GraphDataset, indices: Indices, batch_size: int):
        self.dataset = dataset
        self.indices = torch.as_tensor(indices, dtype=torch.int64)
        self.batch_size = batch_size
        self._kept: list[Batch] | None = None

    def __len__(self) -> int:
        return -(-len(self.indices) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        if self._kept is None:
            self._kept = list(batches(self.dataset, self.indices, self.batch_size)) if len(self) else []
        return iter(self._kept)

    def shuffled(self, generator: torch.Generator) -> Iterator[Batch]:
        """One epoch in random order."""
        order = self.indices[torch.randperm(len(self.indices), generator=generator)]
        return batches(self.dataset, order, self.batch_size)


class ChainLoader:
    """The batches of several loaders, one after the other."""

    def __init__(self, loaders: Sequence[GraphLoader]):
        self.loaders = loaders

    def __len__(self) -> int:
        return sum(map(len, self.loaders))

    def __iter__(self) -> Iterator[Batch]:
        return chain.from_iterable(self.loaders)
