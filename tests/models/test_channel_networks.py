from dataclasses import replace

import pytest
import torch
from graphs import make_graph

from egin_dgl.data import bonds
from egin_dgl.models import EGCN, EGATGong
from egin_dgl.models.egnn import ChannelNetwork


@pytest.mark.parametrize("model", [EGCN, EGATGong])
def test_a_layer_connects_adjacent_nodes(model):
    """E = Ẽ D⁻¹ Ẽᵀ alone connects nodes two steps apart."""
    info = bonds(graphs=8).info
    torch.manual_seed(0)
    network = model(info, hidden_dim=4, num_layers=1).eval()
    graph = make_graph(([0, 1], [1, 0]), num_nodes=2)
    looped, e = network.transform_graph(graph, torch.eye(info.edge_dim)[[0, 0]])
    x = torch.rand(2, info.node_dim, requires_grad=True)
    network.convs[0](looped, x, e)[0].sum().backward()
    assert x.grad[1].abs().sum() > 0


@pytest.mark.parametrize("model", [EGCN, EGATGong])
def test_self_loops_of_the_data_keep_their_weight(model):
    info = replace(bonds(graphs=8).info, edge_dim=2, edge_attributes=0)
    network = model(info, hidden_dim=4, num_layers=1)
    # Into node 0: itself and node 1 in the first channel, node 2 in the second. Node 1: node 0, and itself twice,
    # in no channel. Node 2: nothing but itself.
    src, dst = torch.tensor([[0, 1, 2, 0, 1, 1, 2], [0, 0, 0, 1, 1, 1, 2]])
    e = torch.tensor([[0.5, 0], [3, 0], [0, 4], [2, 0], [0, 0], [0, 0], [0, 7]])
    graph, channels = ChannelNetwork.transform_graph(network, make_graph((src, dst)), e)
    assert torch.equal(
        torch.stack(graph.edges()), torch.stack([src, dst])
    )  # every node has one: none is added
    expected = torch.tensor([[0.5, 4, 1], [3, 0, 0], [0, 4, 0], [2, 0, 0], [1, 0, 1], [1, 0, 1], [0, 7, 1]])
    assert torch.equal(channels, expected)


def test_a_new_self_loop_has_the_mean_weight_of_the_edges():
    info = replace(bonds(graphs=8).info, edge_dim=1, edge_attributes=1)
    network = EGCN(info, hidden_dim=4, num_layers=1)
    graph, channels = ChannelNetwork.transform_graph(
        network, make_graph(([1, 2, 3], [0, 0, 0]), num_nodes=4), torch.tensor([[1.0], [2.0], [-5.0]])
    )
    looped = channels[graph.edges()[0] == graph.edges()[1]]  # positive part, negative part, all self-loops
    assert looped.tolist() == [[1.5, 5, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1]]
