"""PNA: several aggregators and degree scalers."""

from dgl import DGLGraph
from dgl.nn import PNAConv
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers.dgl_layer import DGLLayer
from egin_dgl.layers.mlp import BatchNorm
from egin_dgl.models.classifier import LayerStack

AGGREGATORS = ("mean", "max", "min", "std")
SCALERS = ("identity", "amplification", "attenuation")


class PNA(LayerStack):
    r"""PNA of "Principal Neighbourhood Aggregation for Graph Nets", with DGL's `PNAConv` and edge features in messages.

    .. math:: u_i = U(h_i, \oplus_{j \in N(i)} M(h_j, h_i, e_{ij})), \quad
              \oplus = [1, \log(d_i + 1) / \delta, \delta / \log(d_i + 1)] \otimes [mean, max, min, std]

    .. math:: h_i' = [h_i +] \, LeakyReLU(W \, BatchNorm(u_i / \sqrt{N}) + b)

    M and U are linear, δ is the mean of log(d + 1) over the nodes of the training graphs, N the number of nodes of the
    graph of i. The division by √N, the batch normalisation, the mixing layer (W, b) and the residual, where input and output
    have the same size, are DGL's, after the authors' code; the paper's equation ends with u_i. There is one tower. Without
    messages, ⊕ is zero.

    Args:
        info: sizes of the data, with the degrees of the training graphs.

    Example:
        >>> import dgl, torch
        >>> model = PNA(DatasetInfo(node_dim=7, edge_dim=4, classes=2))
        >>> model(dgl.rand_graph(9, 20), torch.rand(9, 7), torch.rand(20, 4)).shape
        torch.Size([1, 2])
    """

    title = "PNA"
    paper = "Corso et al., NeurIPS 2020"
    when = "accuracy before speed, on graphs of varied degrees"

    def make_layer(self, info: DatasetInfo, dim: int, hidden_dim: int) -> nn.Module:
        delta = info.mean_log_degree or 1.0  # 1 where no training graph has an edge, or degrees are not known
        return PNALayer(PNAConv(dim, hidden_dim, AGGREGATORS, SCALERS, delta, edge_feat_size=info.edge_dim))


class PNALayer(DGLLayer):
    """DGL's `PNAConv` for graphs without edges, and training batches of one node, as well."""

    def __init__(self, conv: PNAConv):
        super().__init__(conv)
        for tower in conv.towers:
            tower.batchnorm = BatchNorm(tower.out_size)

    def call(self, graph: DGLGraph, h: Tensor, e: Tensor) -> Tensor:
        with graph.local_scope():
            # The aggregate of nodes without messages; on a graph without edges DGL would not set it.
            graph.ndata["h_neigh"] = h.new_zeros(len(h), len(AGGREGATORS) * len(SCALERS) * h.shape[1])
            return self.conv(graph, h, e)
