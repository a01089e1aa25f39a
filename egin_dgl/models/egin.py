"""EGIN, EGIN-C and EGIN-E: the paper's models, each with and without a learnable ε.

What they tell apart: EGIN no more than (own colour, multiset of neighbours' colours, Σ e), EGIN-E no more than that with
the multiset of e in place of the sum (for one-hot labels the same), both less than E-WL, which knows the edge to each
neighbour. The outer products of EGIN-C keep these pairs, and lose others: they are not injective either.
"""

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers import MLP, EGINCConv, EGINConv, EGINEConv
from egin_dgl.models.isomorphism import IsomorphismNetwork
from egin_dgl.options import NumLayers, Width

PAPER = "Yue, Liu, Zhang, Qu, ICANN 2024"


class EGIN(IsomorphismNetwork):
    """Messages are concatenations (h_j, e_ij); see `EGINConv`."""

    title = "EGIN"
    paper = PAPER
    when = "edge labels whose counts around a node matter; small and simple"

    def __init__(self, info: DatasetInfo, learn_eps: bool = False, **options):
        def make_layer(mlp, dim):
            return EGINConv(mlp(dim + info.edge_dim), learn_eps)

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)


class EGINC(IsomorphismNetwork):
    """Messages are outer products h_j ⊗ e_ij; see `EGINCConv`."""

    title = "EGIN-C"
    paper = PAPER
    when = "few edge types, when what matters is which neighbour an edge leads to"

    def __init__(self, info: DatasetInfo, learn_eps: bool = False, **options):
        def make_layer(mlp, dim):
            return EGINCConv(mlp(dim * info.edge_dim), learn_eps)

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)


class EGINE(IsomorphismNetwork):
    """Messages are concatenations (h_j, MLP₂(e_ij)); see `EGINEConv`.

    Args:
        edge_dim: output size of the edge MLP of each layer.
        edge_mlp_layers: linear maps in it.
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
