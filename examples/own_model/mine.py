"""A user-defined model: python scripts/train.py --config-dir examples/own_model model=mine"""

from egin_dgl.data import DatasetInfo
from egin_dgl.layers import MLP, EGINConv
from egin_dgl.models.classifier import GraphClassifier, layer_inputs


class Mine(GraphClassifier):
    """Two EGIN layers with a small hidden size."""

    title = "Mine"
    paper = "authors, venue, year"
    when = "one line on when to use it"

    def __init__(self, info: DatasetInfo, hidden_dim: int = 32, num_layers: int = 2, **classifier):
        convs = [
            EGINConv(MLP(dim + info.edge_dim, hidden_dim, hidden_dim))
            for dim in layer_inputs(info.node_dim, hidden_dim, num_layers)
        ]
        super().__init__(info, convs, hidden_dim, **classifier)
