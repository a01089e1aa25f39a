"""GIN, GINE, and the base of models whose layers sum over neighbors and end in an MLP."""

from torch import nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers import MLP, GINConv, GINEConv
from egin_dgl.layers.mlp import Norm, linear
from egin_dgl.models.classifier import LayerStack
from egin_dgl.options import Fraction, NumLayers


class GINFamily(LayerStack):
    """A stack of layers that sum over neighbors and end in an MLP.

    Args:
        mlp_layers: linear maps in the MLP of a layer. Default: 2.
        mlp_dropout: dropout inside that MLP. Default: 0.
        learn_eps: learn the ε of every layer (GIN-ε, EGIN-ε), which is zero otherwise (GIN, EGIN). Default: False.
        norm: batch, layer or none, in the MLPs and between layers. Default: batch.
    """

    def __init__(
        self,
        info: DatasetInfo,
        mlp_layers: NumLayers = 2,
        mlp_dropout: Fraction = 0.0,
        learn_eps: bool = False,
        norm: Norm = "batch",
        **options,
    ):
        self.learn_eps, self.mlp_options = learn_eps, (mlp_layers, mlp_dropout, norm)
        super().__init__(info, norm=norm, **options)

    def make_mlp(self, in_dim: int, hidden_dim: int) -> MLP:
        """The MLP at the end of a layer."""
        return MLP(in_dim, hidden_dim, hidden_dim, *self.mlp_options)

    @property
    def name(self) -> str:
        return f"{self.title}-ε" if self.learn_eps else self.title


class GIN(GINFamily):
    r"""GIN of "How Powerful are Graph Neural Networks?", see `GINConv`; as powerful as the 1-WL test.

    .. math:: h_i' = MLP\{(1+\epsilon)\,h_i + \sum_{j \in N(i)} h_j\}

    Example:
        >>> import dgl, torch
        >>> model = GIN(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "GIN"
    paper = "Xu, Hu, Leskovec, Jegelka, ICLR 2019"
    when = "the baseline to beat, where edges carry nothing"
    uses_edges = False

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        return GINConv(self.make_mlp(dim, hidden_dim), self.learn_eps)


class GINE(GINFamily):
    r"""GINE of "Strategies for Pre-training Graph Neural Networks", see `GINEConv`.

    .. math:: h_i' = MLP\{(1+\epsilon)\,h_i + \sum_{j \in N(i)} ReLU(h_j + W e_{ij} + b)\}

    Example:
        >>> import dgl, torch
        >>> model = GINE(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "GINE"
    paper = "Hu et al., ICLR 2020"
    when = "the usual edge-aware baseline on molecules"

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        return GINEConv(self.make_mlp(dim, hidden_dim), linear(info.edge_dim, dim), self.learn_eps)
