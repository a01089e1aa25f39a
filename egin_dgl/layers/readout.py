"""Readouts: from the features of nodes or edges to one vector per graph of a batch."""

from typing import Literal

import torch
from torch import Tensor, nn

from egin_dgl.data.edge_list import EdgeList, Graph
from egin_dgl.layers.aggregate import at_least_float32

Readout = Literal["sum", "mean", "max"]


class SumPooling(nn.Module):
    """Σ_i h_i over the nodes of each graph: (N, D) -> (B, D)."""

    def forward(self, graph: Graph, h: Tensor) -> Tensor:
        if isinstance(graph, EdgeList):
            return sum_by_graph(h, graph.graph_of_node, graph.batch_size)
        return readout_with_dgl(graph, h, "sum")


class MeanPooling(nn.Module):
    """Mean of h_i over the nodes of each graph, zero for a graph without nodes: (N, D) -> (B, D)."""

    def forward(self, graph: Graph, h: Tensor) -> Tensor:
        if isinstance(graph, EdgeList):
            total = sum_by_graph(h, graph.graph_of_node, graph.batch_size)
            return total / graph.batch_num_nodes().clamp(min=1).unsqueeze(1)
        return readout_with_dgl(graph, h, "mean")


class MaxPooling(nn.Module):
    """Maximum of h_i over the nodes of each graph, zero for a graph without nodes: (N, D) -> (B, D)."""

    def forward(self, graph: Graph, h: Tensor) -> Tensor:
        if isinstance(graph, EdgeList):
            sizes = graph.batch_num_nodes()
            nodes = torch.arange(graph.nodes, device=h.device)
            return torch.embedding_bag(h, nodes, sizes.cumsum(0) - sizes, False, 2)[0]
        return readout_with_dgl(graph, h, "max")


READOUTS: dict[str, type[nn.Module]] = {"sum": SumPooling, "mean": MeanPooling, "max": MaxPooling}


def make_readout(readout: str) -> nn.Module:
    """The pooling of that name: graph, (N, D) -> (B, D) for a batch of B graphs."""
    if readout not in READOUTS:
        raise ValueError(f"readout must be one of {', '.join(READOUTS)}, got {readout!r}")
    return READOUTS[readout]()


def pool_edges(graph: Graph, e: Tensor) -> Tensor:
    """Σ_ij e_ij over the edges of each graph: (E, Q) -> (B, Q)."""
    if isinstance(graph, EdgeList):
        return sum_by_graph(e, graph.graph_of_edge, graph.batch_size)
    import dgl

    with graph.local_scope():
        graph.edata["e"] = e
        return dgl.readout_edges(graph, "e", op="sum")


def sort_nodes(graph: Graph, z: Tensor, k: int) -> Tensor:
    """The k nodes of each graph that are largest in the last channel, in descending order, padded with zeros:
    (N, C) -> (B, k, C)."""
    z = at_least_float32(z)
    if isinstance(graph, EdgeList):
        order = torch.argsort(z[:, -1].detach(), descending=True, stable=True)
        order = order[torch.argsort(graph.graph_of_node[order], stable=True)]  # graph by graph
        number, sizes = graph.graph_of_node, graph.batch_num_nodes()
        rank = torch.arange(graph.nodes, device=z.device) - (sizes.cumsum(0) - sizes)[number]
        # Nodes beyond the first k go to one row, which is dropped: to select rows would wait for a GPU to count them.
        row = torch.where(rank < k, number * k + rank, graph.batch_size * k)
        rows = z.new_zeros(graph.batch_size * k + 1, z.shape[1]).index_copy(0, row, z[order])
        return rows[:-1].view(graph.batch_size, k, z.shape[1])
    import dgl

    with graph.local_scope():
        graph.ndata["z"] = z
        return dgl.topk_nodes(graph, "z", k, sortby=-1)[0]


def sum_by_graph(rows: Tensor, graph_of_row: Tensor, graphs: int) -> Tensor:
    return rows.new_zeros(graphs, rows.shape[1]).index_add(0, graph_of_row, rows)


def readout_with_dgl(graph: Graph, h: Tensor, op: str) -> Tensor:
    import dgl

    with graph.local_scope():
        graph.ndata["h"] = h
        return dgl.readout_nodes(graph, "h", op=op)
