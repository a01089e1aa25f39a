"""Graph layers: a DGL graph, node features and edge features in, node features out. Definitions only.

`egin_dgl.fast` computes some of them faster.
"""

import egin_dgl.with_dgl  # noqa: F401
from egin_dgl.layers.dgcnn import DGCNNConv, SortPool
from egin_dgl.layers.egin import EGINCConv, EGINConv, EGINEConv, EGINMConv
from egin_dgl.layers.egnn import EGNNAConv, EGNNCConv
from egin_dgl.layers.gated_gcn import GatedGCNConv
from egin_dgl.layers.mlp import MLP

__all__ = [
    "DGCNNConv",
    "EGINCConv",
    "EGINConv",
    "EGINEConv",
    "EGINMConv",
    "EGNNAConv",
    "EGNNCConv",
    "GatedGCNConv",
    "MLP",
    "SortPool",
]
