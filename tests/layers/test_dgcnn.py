"""DGCNN's convolution equals its matrix form, and its pooling the paper's order of nodes."""

import torch
from dense import D, H, assert_same, directed_graph, matrix
from graphs import batch_graphs, make_graph

from egin_dgl.layers import DGCNNConv, SortPool


def dense(conv, graph, z):
    a = matrix(graph, torch.ones(graph.num_edges(), dtype=z.dtype)) + torch.eye(len(z), dtype=z.dtype)
    return torch.tanh(torch.diag(1 / a.sum(1)) @ a @ (z @ conv.linear.weight.T + conv.linear.bias))


def test_layer_equals_its_equation_with_gradients():
    torch.manual_seed(1)
    graph, z, _ = directed_graph()
    conv = DGCNNConv(D, H).double()
    torch.nn.init.normal_(conv.linear.bias)
    assert_same(conv, dense, graph, z)


def test_nodes_fall_in_the_last_channel_and_channels_stay_in_place():
    graphs = [make_graph(([], []), num_nodes=n) for n in (3, 1)]
    z = torch.tensor([[9.0, -0.5], [7.0, 0.5], [8.0, 0.1], [6.0, -2.0]])
    expected = torch.tensor([[[7.0, 0.5], [8.0, 0.1]], [[6.0, -2.0], [0.0, 0.0]]])
    assert torch.equal(SortPool(2)(batch_graphs(graphs), z), expected)


def test_gradients_reach_the_nodes_that_are_kept():
    z = torch.tensor([[1.0, 3.0], [1.0, 1.0], [1.0, 2.0]], requires_grad=True)
    SortPool(2)(make_graph(([], []), num_nodes=3), z).sum().backward()
    assert torch.equal(z.grad, torch.tensor([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]))
