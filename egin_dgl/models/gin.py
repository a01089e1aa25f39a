"""GIN: sums over neighbours and MLPs, as strong as the Weisfeiler-Lehman test on nodes."""

from dgl import DGLGraph
from dgl.nn import GINConv
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.loader import Batch
from egin_dgl.layers.dgl_layer import EdgeFreeLayer
from egin_dgl.layers.sum_layer import Messages, SumLayer
from egin_dgl.layers.sums import closed
from egin_dgl.models.isomorphism import IsomorphismNetwork


class GIN(IsomorphismNetwork):
    r"""DGL's `GINConv`, with and without a learnable ε (GIN-ε, and GIN-0 which is called GIN here).

    .. math:: h_i' = MLP\{(1+\epsilon)\,h_i + \sum_{j \in N(i)} h_j\}
    """

    title = "GIN"
    paper = "Xu, Hu, Leskovec, Jegelka, ICLR 2019"
    when = "the baseline to beat, where edges carry nothing"
    uses_edges = False

    def __init__(self, info: DatasetInfo, learn_eps: bool = False, **options):
        def make_layer(mlp, dim):
            return GINLayer(GINConv(mlp(dim), learn_eps=learn_eps))

        super().__init__(info, make_layer, learn_eps=learn_eps, **options)


class GINLayer(EdgeFreeLayer, SumLayer):
    """DGL's layer, and how the same is summed on a batch of the loader."""

    conv: GINConv

    def ending(self) -> nn.Module:
        return self.conv.apply_func

    def epsilon(self) -> Tensor:
        return self.conv.eps

    def forward(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        return super().forward(graph, h, e)

    def messages(self, batch: Batch) -> Messages:
        return Messages(closed(batch))
