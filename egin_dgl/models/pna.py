"""PNA: several aggregators and degree scalers."""

from torch import nn

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.layers import PNAConv
from egin_dgl.models.classifier import LayerStack


class PNA(LayerStack):
    r"""PNA of "Principal Neighbourhood Aggregation for Graph Nets", with edge features in messages; see `PNAConv`.

    δ is the mean of log(d + 1) over the nodes of the training graphs.

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
        return PNAConv(dim, info.edge_dim, hidden_dim, delta)
