"""GIN: sums over neighbours and MLPs, as strong as the Weisfeiler-Lehman test on nodes."""

from dgl import DGLGraph
from dgl.nn import GINConv
from torch import Tensor

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.loader import Batch
from egin_dgl.layers.dgl_layer import EdgeFreeLayer
from egin_dgl.layers.sums import sum_closed
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


class GINLayer(EdgeFreeLayer):
    """DGL's layer, and the same on a batch of the loader by a sparse product."""

    def forward(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        return super().forward(graph, h, e)

    def on_batch(self, batch: Batch, h: Tensor) -> Tensor:
        closed, eps = sum_closed(batch, h), self.conv.eps
        return self.conv.apply_func(closed + eps * h if eps.requires_grad else closed)
