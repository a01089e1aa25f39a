"""Layers: graph, node features and edge features in, node features out; they never see a configuration."""

from egin_dgl.layers.egin import EGINCConv, EGINConv, EGINEConv
from egin_dgl.layers.mlp import MLP

__all__ = ["EGINConv", "EGINCConv", "EGINEConv", "MLP"]
