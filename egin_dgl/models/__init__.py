"""Models: built from a `DatasetInfo`, called as ``model(graph, node_feats, edge_feats) -> logits``."""

from egin_dgl.models.attention import GAT, EdgeGAT
from egin_dgl.models.baselines import Majority, MLPBag
from egin_dgl.models.classifier import GraphClassifier
from egin_dgl.models.dgcnn import DGCNN
from egin_dgl.models.egin import EGIN, EGINC, EGINE, EGINM
from egin_dgl.models.egnn import EGCN, EGATGong
from egin_dgl.models.gated_gcn import GatedGCN
from egin_dgl.models.gin import GIN, GINE
from egin_dgl.models.model import GraphModel
from egin_dgl.models.pna import PNA

__all__ = [
    "DGCNN",
    "EGATGong",
    "EGCN",
    "EGIN",
    "EGINC",
    "EGINE",
    "EGINM",
    "EdgeGAT",
    "GAT",
    "GIN",
    "GINE",
    "GatedGCN",
    "GraphClassifier",
    "GraphModel",
    "MLPBag",
    "Majority",
    "PNA",
]
