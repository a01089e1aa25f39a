"""Graph layers: a graph, node features and edge features in, node features out. Definitions only.

The graph is a `DGLGraph`, or an `EdgeList` where DGL is absent or cannot use the device.

`egin_dgl.fast` computes some of them faster.
"""

from egin_dgl.layers.dgcnn import DGCNNConv, SortPool
from egin_dgl.layers.egin import EGINCConv, EGINConv, EGINEConv, EGINMConv
from egin_dgl.layers.egnn import EGNNAConv, EGNNCConv
from egin_dgl.layers.gat import EdgeGATConv, GATConv
from egin_dgl.layers.gated_gcn import GatedGCNConv
from egin_dgl.layers.gin import GINConv, GINEConv
from egin_dgl.layers.mlp import MLP
from egin_dgl.layers.pna import PNAConv

__all__ = [
    "DGCNNConv",
    "EGINCConv",
    "EGINConv",
    "EGINEConv",
    "EGINMConv",
    "EGNNAConv",
    "EGNNCConv",
    "EdgeGATConv",
    "GATConv",
    "GINConv",
    "GINEConv",
    "GatedGCNConv",
    "MLP",
    "PNAConv",
    "SortPool",
]
