"""EGIN, EGIN-C and EGIN-E: the paper's models, each with and without a learnable ε."""

from collections.abc import Callable

from torch import nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers import MLP, EGINCConv, EGINConv, EGINEConv
from egin_dgl.models.classifier import GraphClassifier, layer_inputs


class EdgedGIN(GraphClassifier):
    """A stack of edged layers under the classifier of GIN; a variant says only how one layer is made.

    Args:
        info: sizes of the data.
        make_layer: ``make_layer(mlp, dim) -> layer`` for `dim` input features, where ``mlp(in_dim)`` makes the MLP
            that ends the layer.
        hidden_dim: features of a node after each layer.
        layers: message-passing layers.
        mlp_layers: linear maps in the MLP of a layer.
        mlp_dropout: dropout inside that MLP.
        learn_eps: learn the ε of every layer (EGIN-ε) or leave it out (EGIN).
        norm: batch, layer or none, in the MLPs and between layers.
        classifier: dropout and readout of `GraphClassifier`.
    """

    def __init__(
        self,
        info: DatasetInfo,
        make_layer: Callable[[Callable[[int], MLP], int], nn.Module],
        hidden_dim: int = 64,
        layers: int = 4,
        mlp_layers: int = 2,
        mlp_dropout: float = 0.0,
        learn_eps: bool = False,
        norm: str = "batch",
        **classifier,
    ):
        def mlp(in_dim: int) -> MLP:
            return MLP(in_dim, hidden_dim, hidden_dim, mlp_layers, mlp_dropout, norm)

        convs = [make_layer(mlp, dim) for dim in layer_inputs(info.node_dim, hidden_dim, layers)]
        super().__init__(info, convs, hidden_dim, norm=norm, **classifier)
        self.learn_eps = learn_eps

    @property
    def name(self) -> str:
        return f"{self.title}-ε" if self.learn_eps else self.title


class EGIN(EdgedGIN):
    """Messages are concatenations (h_j, e_ij); see `EGINConv`."""

    title = "EGIN"

    def __init__(self, info: DatasetInfo, learn_eps: bool = False, **options):
        def make_layer(mlp, dim):
            return EGINConv(mlp(dim + info.edge_dim), learn_eps)

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)


class EGINC(EdgedGIN):
    """Messages are outer products h_j ⊗ e_ij; see `EGINCConv`."""

    title = "EGIN-C"

    def __init__(self, info: DatasetInfo, learn_eps: bool = False, **options):
        def make_layer(mlp, dim):
            return EGINCConv(mlp(dim * info.edge_dim), learn_eps)

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)


class EGINE(EdgedGIN):
    """Messages are concatenations (h_j, MLP₂(e_ij)); see `EGINEConv`.

    Args:
        edge_dim: output size of the edge MLP of each layer.
        edge_mlp_layers: linear maps in it.
    """

    title = "EGIN-E"

    def __init__(
        self,
        info: DatasetInfo,
        edge_dim: int = 16,
        edge_mlp_layers: int = 2,
        learn_eps: bool = False,
        **options,
    ):
        def make_layer(mlp, dim):
            # No batch statistics over edges: MLP₂(δ) must be the same function as MLP₂(e_ij).
            edge_mlp = MLP(info.edge_dim, edge_dim, edge_dim, edge_mlp_layers, norm="none")
            return EGINEConv(mlp(dim + edge_dim), edge_mlp, learn_eps)

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)
