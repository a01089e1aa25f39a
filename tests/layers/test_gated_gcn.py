"""GatedGCN's layer equals its equation."""

import torch
from dense import D, H, Q, assert_same, directed_graph

from egin_dgl.layers import GatedGCNConv


def dense(conv, graph, h, e):
    src, dst = graph.edges()
    new_e = conv.A(h)[dst] + conv.B(h)[src] + conv.C(e)
    rows = []
    for i in range(graph.num_nodes()):
        gates = torch.sigmoid(new_e[dst == i])
        messages = conv.V(h)[src[dst == i]]
        rows.append(conv.U(h)[i] + (gates * messages).sum(0))
    return torch.stack(rows), new_e


def test_layer_equals_its_equation_with_gradients():
    torch.manual_seed(1)
    assert_same(GatedGCNConv(D, Q, H).double(), dense, *directed_graph())
