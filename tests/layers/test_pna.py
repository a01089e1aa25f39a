"""The PNA layer equals the equation in its docstring."""

import math

import pytest
import torch
from graphs import batch_graphs, make_graph

from egin_dgl.layers import PNAConv

D, Q, DELTA = 3, 2, 0.7


def dense(layer, graph, h, e, sizes):
    """Node by node: messages, aggregators times scalers, √N, batch normalisation, mixing layer, residual."""
    src, dst = graph.edges()
    rows = []
    for i, nodes in enumerate(sizes):
        seen = (dst == i).nonzero().squeeze(1)
        total = torch.zeros(12 * D, dtype=h.dtype)
        if len(seen):
            inputs = torch.cat([h[src[seen]], h[i].expand(len(seen), D), e[seen]], dim=1)
            messages = inputs @ layer.M.weight.T + layer.M.bias
            spread = messages.var(0, unbiased=False).sqrt()
            found = torch.cat([messages.mean(0), messages.max(0)[0], messages.min(0)[0], spread])
            amplify = math.log(len(seen) + 1) / DELTA
            total = torch.cat([found, amplify * found, found / amplify])
        rows.append((torch.cat([h[i], total]) @ layer.U.weight.T + layer.U.bias) / math.sqrt(nodes))
    u = torch.stack(rows)
    u = (u - u.mean(0)) / (u.var(0, unbiased=False) + layer.norm.eps).sqrt()
    u = u * layer.norm.weight + layer.norm.bias
    out = torch.nn.functional.leaky_relu(u @ layer.mix[0].weight.T + layer.mix[0].bias)
    return h + out if out.shape == h.shape else out


@pytest.mark.parametrize("out_dim", [D, 5])  # with a residual, and without
def test_layer_equals_its_equation(out_dim):
    torch.manual_seed(0)
    layer = PNAConv(D, Q, out_dim, DELTA).double().train()
    parts = [
        make_graph(([0, 1, 2, 2, 1], [1, 0, 1, 0, 3]), num_nodes=4),
        make_graph(([0, 1], [1, 0]), num_nodes=3),
    ]
    graph = batch_graphs(parts)
    h = torch.randn(7, D, dtype=torch.float64)
    e = torch.randn(7, Q, dtype=torch.float64)
    torch.testing.assert_close(layer(graph, h, e), dense(layer, graph, h, e, sizes=[4] * 4 + [3] * 3))
