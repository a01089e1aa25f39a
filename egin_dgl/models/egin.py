"""EGIN, EGIN-C and EGIN-E of "Edged Weisfeiler-Lehman Algorithm" (ICANN 2024), and EGIN-M, each with and without a learned ε.

Expressive power: EGIN distinguishes at most (own color, multiset of neighbors' colors, Σ e), EGIN-E at most that with the
multiset of e instead of the sum (for one-hot labels the same). Both are weaker than E-WL, which sees the edge to each neighbor. The
outer products of EGIN-C keep these pairs, but their sums are not injective either. EGIN-M is as powerful as E-WL.
"""

from torch import nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers import MLP, EGINCConv, EGINConv, EGINEConv, EGINMConv
from egin_dgl.models.gin import GINFamily
from egin_dgl.options import NumLayers, Width

PAPER = "Yue, Liu, Zhang, Qu, ICANN 2024"


class EGIN(GINFamily):
    """EGIN: messages are concatenations (h_j, e_ij); see `EGINConv`.

    Example:
        >>> import dgl, torch
        >>> model = EGIN(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "EGIN"
    paper = PAPER
    when = "edge labels whose counts around a node matter; small and simple"

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        return EGINConv(self.make_mlp(dim + info.edge_dim, hidden_dim), self.learn_eps)


class EGINC(GINFamily):
    """EGIN-C: messages are outer products h_j ⊗ e_ij; see `EGINCConv`.

    Example:
        >>> import dgl, torch
        >>> model = EGINC(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "EGIN-C"
    paper = PAPER
    when = "few edge types, when what matters is which neighbour an edge leads to"

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        return EGINCConv(self.make_mlp(dim * info.edge_dim, hidden_dim), self.learn_eps)


class EGINE(GINFamily):
    """EGIN-E: messages are concatenations (h_j, MLP₂(e_ij)); see `EGINEConv`.

    Args:
        edge_dim: output size of the edge MLP of each layer. Default: 16.
        edge_mlp_layers: linear maps in it. Default: 2.

    Example:
        >>> import dgl, torch
        >>> model = EGINE(DatasetInfo(node_dim=7, edge_dim=4, classes=2), edge_dim=8)
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "EGIN-E"
    paper = PAPER
    when = "a first choice: edge labels or attributes of any scale"

    def __init__(self, info: DatasetInfo, edge_dim: Width = 16, edge_mlp_layers: NumLayers = 2, **options):
        self.edge_dim, self.edge_mlp_layers = edge_dim, edge_mlp_layers
        super().__init__(info, **options)

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        # No batch statistics over edges: MLP₂(δ) must be the same function as MLP₂(e_ij).
        edge_mlp = MLP(info.edge_dim, self.edge_dim, self.edge_dim, self.edge_mlp_layers, norm="none")
        return EGINEConv(self.make_mlp(dim + self.edge_dim, hidden_dim), edge_mlp, self.learn_eps)


class EGINM(GINFamily):
    """EGIN-M: messages are MLP₂(h_j, e_ij), of hidden_dim features; see `EGINMConv`.

    Args:
        tuple_mlp_layers: linear maps in MLP₂; with one it is no more powerful than EGIN. Default: 2.

    Example:
        >>> import dgl, torch
        >>> model = EGINM(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "EGIN-M"
    paper = "here; EGIN with an MLP before the sum"
    when = "which neighbour an edge leads to matters, for edges of any kind; as powerful as E-WL"

    def __init__(self, info: DatasetInfo, tuple_mlp_layers: NumLayers = 2, **options):
        self.tuple_mlp_layers = tuple_mlp_layers
        super().__init__(info, **options)

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        # Neither normalisation nor dropout: equal tuples have equal messages, (h_i, δ) as well.
        tuple_mlp = MLP(dim + info.edge_dim, hidden_dim, hidden_dim, self.tuple_mlp_layers, norm="none")
        return EGINMConv(self.make_mlp(hidden_dim, hidden_dim), tuple_mlp, self.learn_eps)
