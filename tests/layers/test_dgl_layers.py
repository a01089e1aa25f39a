"""Layers that DGL has too equal those of DGL, with the same weights: values and gradients."""

import pytest
import torch
from torch import nn

from egin_dgl.layers import EdgeGATConv, GATConv, GINConv, GINEConv, PNAConv

dgl = pytest.importorskip("dgl", reason="DGL is not installed")
D, Q, H, HEADS = 4, 3, 5, 2


def edge_free(conv):
    return lambda graph, h, e: conv(graph, h)


def pairs():
    """Of each layer: ours, DGL's, and how DGL's is called."""
    conv = dgl.nn
    mlp, linear = nn.Linear(D, H), nn.Linear(Q, D)
    theirs = conv.GINConv(mlp, "sum", learn_eps=True)
    yield "GIN", GINConv(mlp, learn_eps=True), theirs, edge_free(theirs)
    gine = conv.GINEConv(mlp, learn_eps=True)
    theirs = nn.ModuleList([gine, linear])
    yield "GINE", GINEConv(mlp, linear, True), theirs, lambda graph, h, e: gine(graph, h, linear(e))
    gat = conv.GATConv(D, H, HEADS)
    yield "GAT", GATConv(D, H, HEADS), gat, edge_free(gat)
    edge_gat = conv.EdgeGATConv(D, Q, H, HEADS)
    yield "EdgeGAT", EdgeGATConv(D, Q, H, HEADS), edge_gat, edge_gat
    scalers = ("identity", "amplification", "attenuation")
    pna = conv.PNAConv(D, D, ("mean", "max", "min", "std"), scalers, 0.7, edge_feat_size=Q)
    yield "PNA", PNAConv(D, Q, D, 0.7), pna, pna


@pytest.mark.parametrize("name", ["GIN", "GINE", "GAT", "EdgeGAT", "PNA"])
def test_layer_equals_that_of_dgl(name):
    torch.manual_seed(0)
    ours, theirs, call = next(pair[1:] for pair in pairs() if pair[0] == name)
    ours.double(), theirs.double()
    with torch.no_grad():
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            mine.copy_(other.view_as(mine))
    # Parallel edges, and a self-loop for every node, without which DGL's attention refuses the graph.
    src, dst = [0, 0, 1, 2, 0, 1, 2, 3], [1, 1, 2, 0, 0, 1, 2, 3]
    graph = dgl.graph((src, dst))
    h = torch.randn(4, D, dtype=torch.float64, requires_grad=True)
    e = torch.randn(8, Q, dtype=torch.float64, requires_grad=True)
    found, expected = ours(graph, h, e), call(graph, h, e).flatten(1)
    torch.testing.assert_close(found, expected)
    weights = torch.linspace(-1, 1, found.numel(), dtype=h.dtype).view_as(found)
    results = [
        torch.autograd.grad((out * weights).sum(), [h, e, *layer.parameters()], allow_unused=True)
        for out, layer in ((found, ours), (expected, theirs))
    ]
    for mine, other in zip(*results, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine.flatten(), other.flatten())
