"""The same stack written plainly with PyG and with DGL, and the bare matrix products that any of them needs."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, GINEConv, global_add_pool

from egin_dgl.backend import import_dgl
from egin_dgl.data import GraphDataset
from egin_dgl.data.dataset import DatasetInfo

HIDDEN, LAYERS, DROPOUT = 64, 4, 0.5


class Stack(nn.Module):
    """Layers, batch normalisation and ReLU, a sum readout of every depth and a linear map of each, as in ours."""

    def __init__(self, info: DatasetInfo, make_conv: Callable[[nn.Module, int], nn.Module]):
        super().__init__()
        sizes = [info.node_dim] + [HIDDEN] * LAYERS
        self.convs = nn.ModuleList(make_conv(mlp(size), size) for size in sizes[:-1])
        self.norms = nn.ModuleList(nn.BatchNorm1d(HIDDEN) for _ in self.convs)
        self.scores = nn.ModuleList(nn.Linear(size, info.classes) for size in sizes)
        self.dropout = nn.Dropout(DROPOUT)

    def run(self, h: Tensor, call: Callable, pool: Callable) -> Tensor:
        total = self.dropout(self.scores[0](pool(h)))
        for conv, norm, score in zip(self.convs, self.norms, self.scores[1:], strict=True):
            h = torch.relu(norm(call(conv, h)))
            total = total + self.dropout(score(pool(h)))
        return total


def mlp(size: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(size, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN)
    )


class PyG(Stack):
    def __init__(self, info: DatasetInfo, edges: bool):
        def make(mlp, size):
            return GINEConv(mlp, edge_dim=info.edge_dim) if edges else GINConv(mlp)

        super().__init__(info, make)
        self.edges = edges

    def forward(self, batch) -> Tensor:
        inputs = (batch.edge_index, batch.edge_attr) if self.edges else (batch.edge_index,)
        return self.run(
            batch.x,
            lambda conv, h: conv(h, *inputs),
            lambda h: global_add_pool(h, batch.batch, batch.num_graphs),
        )


class EmbeddedGINE(nn.Module):
    """DGL's GINE wants edge features of the nodes' size."""

    def __init__(self, mlp: nn.Module, size: int, edge_dim: int):
        super().__init__()
        self.conv, self.embedding = import_dgl().nn.GINEConv(mlp), nn.Linear(edge_dim, size)

    def forward(self, graph, h: Tensor, e: Tensor) -> Tensor:
        return self.conv(graph, h, self.embedding(e))


class DGL(Stack):
    def __init__(self, info: DatasetInfo):
        super().__init__(info, lambda mlp, size: EmbeddedGINE(mlp, size, info.edge_dim))
        self.pool = import_dgl().nn.SumPooling()

    def forward(self, graph) -> Tensor:
        e = graph.edata["feat"]
        return self.run(graph.ndata["feat"], lambda conv, h: conv(graph, h, e), lambda h: self.pool(graph, h))


def pyg_graphs(dataset: GraphDataset) -> list[Data]:
    graphs = []
    for graph, label in (dataset[i] for i in range(len(dataset))):
        edges = torch.stack(graph.edges())
        graphs.append(Data(graph.ndata["feat"], edges, graph.edata["feat"], y=label.view(1)))
    return graphs


def pyg_batches(dataset: GraphDataset, batch_size: int) -> Iterator:
    loader = DataLoader(pyg_graphs(dataset), batch_size, shuffle=True, drop_last=True)
    while True:
        for batch in loader:
            yield batch, batch.y


def dgl_batches(dataset: GraphDataset, batch_size: int) -> Iterator:
    graphs = [dataset[i] for i in range(len(dataset))]
    loader = import_dgl().dataloading.GraphDataLoader(
        graphs, batch_size=batch_size, shuffle=True, drop_last=True
    )
    while True:
        yield from loader


def bare_products(rows: int, sizes: list[tuple[int, int]]) -> Callable[[], None]:
    """x W for each linear map, and the two products of its gradient; the first needs none for its input."""
    work = [(torch.randn(rows, d), torch.randn(d, h), torch.randn(rows, h)) for d, h in sizes]

    def run() -> None:
        for number, (x, weight, grad) in enumerate(work):
            x @ weight
            x.t() @ grad
            if number:
                grad @ weight.t()

    return run
