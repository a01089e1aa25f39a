"""The layer of "Principal Neighbourhood Aggregation for Graph Nets" (Corso et al., NeurIPS 2020)."""

import math

import torch
from torch import Tensor, nn

from egin_dgl.data.edge_list import EdgeList, Graph
from egin_dgl.layers.aggregate import at_least_float32, sum_edges
from egin_dgl.layers.mlp import BatchNorm

SMALLEST = 1e-30  # under a root, where the gradient of zero would be infinite


class PNAConv(nn.Module):
    r"""PNA layer with one tower, and edge features in the messages.

    .. math:: u_i = U(h_i, \oplus_{j \in N(i)} M(h_j, h_i, e_{ij})), \quad
              \oplus = [1, \log(d_i + 1) / \delta, \delta / \log(d_i + 1)] \otimes [mean, max, min, std]

    .. math:: h_i' = [h_i +] \, LeakyReLU(W \, BatchNorm(u_i / \sqrt{N}) + b)

    M and U are linear, N is the number of nodes of the graph of i. The division by √N, the batch normalisation, the mixing
    layer (W, b) and the residual, where input and output have the same size, are those of the authors' code and of DGL; the
    paper's equation ends with u_i. Without messages, ⊕ is zero.

    Args:
        in_dim: D, features of a node.
        edge_dim: Q, features of an edge.
        out_dim: H, features of a node in the result.
        delta: δ, the mean of log(d + 1) over the nodes of the training graphs.

    Shapes: h (N, D), e (E, Q) -> (N, H).

    Example:
        >>> import dgl
        >>> PNAConv(7, 4, 64, delta=1.0)(dgl.rand_graph(3, 6), torch.rand(3, 7), torch.rand(6, 4)).shape
        torch.Size([3, 64])
    """

    def __init__(self, in_dim: int, edge_dim: int, out_dim: int, delta: float):
        super().__init__()
        self.delta = delta
        self.M = nn.Linear(2 * in_dim + edge_dim, in_dim)
        self.U = nn.Linear(13 * in_dim, out_dim)
        self.norm = BatchNorm(out_dim)
        self.mix = nn.Sequential(nn.Linear(out_dim, out_dim), nn.LeakyReLU())

    def forward(self, graph: Graph, h: Tensor, e: Tensor) -> Tensor:
        h_in, (src, dst) = at_least_float32(h), graph.edges()
        h = h_in.view_as(
            h_in
        )  # autograd sums the gradients of a view before it adds that of the residual, as DGL does
        messages = self.M(torch.cat([h.index_select(0, src), h.index_select(0, dst), e], dim=-1))
        aggregated = aggregate(graph, at_least_float32(messages), self.delta)
        u = at_least_float32(self.U(torch.cat([h, aggregated], dim=-1))) * inverse_root_size(graph, h)
        mixed = self.mix(self.norm(u))
        return mixed + h_in if h.shape[1] == mixed.shape[1] else mixed


def inverse_root_size(graph: Graph, h: Tensor) -> Tensor:
    """1 / √N of the graph of each node: (N, 1)."""
    sizes = graph.batch_num_nodes()
    inverse = (1 / sizes.to(h.dtype)).sqrt()
    return inverse.repeat_interleave(sizes, output_size=len(h)).unsqueeze(1)


def aggregate(graph: Graph, messages: Tensor, delta: float) -> Tensor:
    """⊕ over the edges into each node: (E, D) -> (N, 12 · D)."""
    if isinstance(graph, EdgeList):
        return aggregate_edge_list(graph, messages, delta)
    import dgl.function as fn

    def reduce(nodes) -> dict[str, Tensor]:
        """Nodes of the same degree d, with their messages (n, d, D)."""
        m = nodes.mailbox["m"]
        mean, highest, lowest = m.mean(dim=1), m.max(dim=1)[0], m.min(dim=1)[0]
        std = deviation((m * m).mean(dim=1), m.mean(dim=1))
        found = torch.cat([mean, highest, lowest, std], dim=1)
        log_degree = math.log(m.shape[1] + 1)
        return {"sum": torch.cat([found, found * (log_degree / delta), found * (delta / log_degree)], dim=1)}

    with graph.local_scope():
        # Of nodes without messages; on a graph without edges DGL would not set it.
        graph.ndata["sum"] = messages.new_zeros(graph.num_nodes(), 12 * messages.shape[1])
        graph.edata["m"] = messages
        graph.update_all(fn.copy_e("m", "m"), reduce)
        return graph.ndata["sum"]


def aggregate_edge_list(graph: EdgeList, m: Tensor, delta: float) -> Tensor:
    degrees = graph.in_degrees().to(m.dtype).unsqueeze(1)
    order, starts = graph.in_edges
    mean, square = (sum_edges(graph, x) / degrees.clamp(min=1) for x in (m, m * m))
    # A maximum of one message: its gradient is not divided among equal ones.
    highest, lowest = (sign * torch.embedding_bag(sign * m, order, starts, False, 2)[0] for sign in (1, -1))
    std = torch.where(degrees > 0, deviation(square, mean), 0)
    found = torch.cat([mean, highest, lowest, std], dim=1)
    log_degree = torch.log(degrees.clamp(min=1) + 1)
    return torch.cat([found, found * (log_degree / delta), found * (delta / log_degree)], dim=1)


def deviation(square: Tensor, mean: Tensor) -> Tensor:
    """√(E[x²] − E[x]²)."""
    return (torch.relu(square - mean * mean) + SMALLEST).sqrt()
