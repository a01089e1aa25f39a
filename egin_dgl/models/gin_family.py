"""The base of GIN, GINE and the EGIN family."""

from collections.abc import Callable

from torch import nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers import MLP
from egin_dgl.layers.mlp import Norm
from egin_dgl.models.classifier import GraphClassifier, layer_inputs
from egin_dgl.options import Fraction, NumLayers, Width


class GINFamily(GraphClassifier):
    """A stack of layers that sum over neighbors and end in an MLP; a model defines only how one layer is made.

    Args:
        info: sizes of the data.
        make_layer: ``make_layer(mlp, dim) -> layer`` for `dim` input features, where ``mlp(in_dim)`` makes the MLP
            at the end of the layer.
        hidden_dim: features of a node after each layer. Default: 64.
        num_layers: message-passing layers. Default: 4.
        mlp_layers: linear maps in the MLP of a layer. Default: 2.
        mlp_dropout: dropout inside that MLP. Default: 0.
        learn_eps: learn the ε of every layer (GIN-ε, EGIN-ε), which is zero otherwise (GIN, EGIN). Default: False.
        norm: batch, layer or none, in the MLPs and between layers. Default: batch.
        classifier: dropout and readout of `GraphClassifier`.
    """

    def __init__(
        self,
        info: DatasetInfo,
        make_layer: Callable[[Callable[[int], MLP], int], nn.Module],
        hidden_dim: Width = 64,
        num_layers: NumLayers = 4,
        mlp_layers: NumLayers = 2,
        mlp_dropout: Fraction = 0.0,
        learn_eps: bool = False,
        norm: Norm = "batch",
        **classifier,
    ):
        def mlp(in_dim: int) -> MLP:
            return MLP(in_dim, hidden_dim, hidden_dim, mlp_layers, mlp_dropout, norm)

        convs = [make_layer(mlp, dim) for dim in layer_inputs(info.node_dim, hidden_dim, num_layers)]
        super().__init__(info, convs, hidden_dim, norm=norm, **classifier)
        self.learn_eps = learn_eps

    @property
    def name(self) -> str:
        return f"{self.title}-ε" if self.learn_eps else self.title
