import dgl
import pytest
import torch

from egin_dgl.data import bonds
from egin_dgl.models import EGCN, EGATGong


@pytest.mark.parametrize("model", [EGCN, EGATGong])
def test_a_layer_joins_nodes_next_to_each_other(model):
    """E = Ẽ D⁻¹ Ẽᵀ alone joins nodes two steps apart: the ends of an edge would never meet."""
    info = bonds(graphs=8).info
    torch.manual_seed(0)
    network = model(info, hidden_dim=4, layers=1).eval()
    graph = dgl.graph(([0, 1], [1, 0]), num_nodes=2)
    wired, e = network.wire(graph, torch.eye(info.edge_dim)[[0, 0]])
    x = torch.rand(2, info.node_dim, requires_grad=True)
    network.convs[0](wired, x, e)[0].sum().backward()
    assert x.grad[1].abs().sum() > 0
