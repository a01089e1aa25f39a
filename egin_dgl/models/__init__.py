"""Models: all are built from a `DatasetInfo` and called as ``model(graph, node_feats, edge_feats) -> logits``."""

from egin_dgl.models.classifier import GraphClassifier
from egin_dgl.models.egin import EGIN, EGINC, EGINE

__all__ = ["EGIN", "EGINC", "EGINE", "GraphClassifier"]
