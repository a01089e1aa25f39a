"""GIN: sums over neighbors and MLPs, as powerful as the 1-WL test."""

from dgl.nn import GINConv
from torch import nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers.dgl_layer import EdgeFreeLayer
from egin_dgl.models.gin_family import GINFamily


class GIN(GINFamily):
    r"""GIN of "How Powerful are Graph Neural Networks?", with DGL's `GINConv`.

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

    def __init__(self, info: DatasetInfo, learn_eps: bool = False, **options):
        def make_layer(mlp, dim):
            return GINLayer(mlp(dim), learn_eps)

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)


class GINLayer(EdgeFreeLayer):
    """DGL's `GINConv` with a sum over neighbors."""

    def __init__(self, mlp: nn.Module, learn_eps: bool = False):
        super().__init__(GINConv(mlp, "sum", learn_eps=learn_eps))
