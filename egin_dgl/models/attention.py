"""GAT, and GAT with edge features."""

from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.edge_list import Graph
from egin_dgl.layers.aggregate import add_self_loops
from egin_dgl.layers.gat import EdgeGATConv, GATConv
from egin_dgl.models.classifier import LayerStack
from egin_dgl.options import Count, Width


class AttentionNetwork(LayerStack):
    """Attention layers with several heads, concatenated; every node attends to itself through a self-loop.

    Args:
        hidden_dim: features of a node after each layer, all heads together. Default: 64.
        heads: heads of each layer; must divide hidden_dim. Default: 8.
    """

    def __init__(self, info: DatasetInfo, hidden_dim: Width = 64, heads: Count = 8, **options):
        if heads < 1 or hidden_dim % heads:
            raise ValueError(f"heads must divide hidden_dim, got {heads} heads for {hidden_dim}")
        self.num_heads = heads
        super().__init__(info, hidden_dim, **options)

    def transform_graph(self, graph: Graph, edge_feats: Tensor) -> tuple[Graph, Tensor]:
        return add_self_loops(graph, edge_feats)


class GAT(AttentionNetwork):
    r"""GAT of "Graph Attention Networks", see `GATConv`; heads are concatenated in every layer.

    .. math:: h_i' = \Vert_{heads} \sum_{j \in N(i) \cup \{i\}} \alpha_{ij} W h_j, \quad
              \alpha_{ij} = softmax_j(LeakyReLU(a^T [W h_i \Vert W h_j]))

    Example:
        >>> import dgl, torch
        >>> model = GAT(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "GAT"
    paper = "Veličković et al., ICLR 2018"
    when = "attention without edge features, for comparison"
    uses_edges = False

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        return GATConv(dim, hidden_dim // self.num_heads, self.num_heads)


class EdgeGAT(AttentionNetwork):
    r"""GAT with edge features in attention and messages, see `EdgeGATConv`; self-loops have δ = 0.

    .. math:: h_i' = W_r h_i + \Vert_{heads} \sum_{j \in N(i) \cup \{i\}} \alpha_{ij} (W h_j + W_e e_{ij}), \quad
              \alpha_{ij} = softmax_j(LeakyReLU(a^T [W h_i \Vert W h_j \Vert W_e e_{ij}]))

    The attention is static: a is applied before the nonlinearity, so that h_i shifts the scores of all its neighbors
    equally and never changes their order. GATv2 (Brody, Alon, Yahav, ICLR 2022) applies it after.

    Example:
        >>> import dgl, torch
        >>> model = EdgeGAT(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "EdgeGAT"
    paper = "Monninger, Schmidt et al., RA-L 2023"
    when = "attention that sees edges; when some neighbours matter much more than others"

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        return EdgeGATConv(dim, info.edge_dim, hidden_dim // self.num_heads, self.num_heads)
