"""EGIN, EGIN-C and EGIN-E of "Edged Weisfeiler-Lehman Algorithm" (ICANN 2024), each with and without a learned ε.

Expressive power: EGIN distinguishes at most (own color, multiset of neighbors' colors, Σ e), EGIN-E at most that with the
multiset of e instead of the sum (for one-hot labels the same). Both are weaker than E-WL, which sees the edge to each neighbor. The
outer products of EGIN-C keep these pairs, but their sums are not injective either.
"""

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers import MLP, EGINCConv, EGINConv, EGINEConv
from egin_dgl.models.gin_family import GINFamily
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

    def __init__(self, info: DatasetInfo, learn_eps: bool = False, **options):
        def make_layer(mlp, dim):
            return EGINConv(mlp(dim + info.edge_dim), learn_eps)

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)


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

    def __init__(self, info: DatasetInfo, learn_eps: bool = False, **options):
        def make_layer(mlp, dim):
            return EGINCConv(mlp(dim * info.edge_dim), learn_eps)

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)


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

    def __init__(
        self,
        info: DatasetInfo,
        edge_dim: Width = 16,
        edge_mlp_layers: NumLayers = 2,
        learn_eps: bool = False,
        **options,
    ):
        def make_layer(mlp, dim):
            # No batch statistics over edges: MLP₂(δ) must be the same function as MLP₂(e_ij).
            edge_mlp = MLP(info.edge_dim, edge_dim, edge_dim, edge_mlp_layers, norm="none")
            return EGINEConv(mlp(dim + edge_dim), edge_mlp, learn_eps)

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)
