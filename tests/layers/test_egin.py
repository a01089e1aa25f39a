"""Each layer is its equation: equal to a dense reference in float64, values and gradients."""

import pytest
import torch
from graphs import batch_graphs, make_graph

from egin_dgl.layers import MLP, EGINCConv, EGINConv, EGINEConv, EGINMConv

D, Q, R, H = 5, 3, 4, 6


def random_graph(nodes=7, edges=16, seed=0):
    """Undirected, with an isolated last node; edge features are the same both ways."""
    random = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(nodes - 1))
    pairs = pairs[torch.randperm(len(pairs), generator=random)[: edges // 2]]
    one_way = torch.rand(len(pairs), Q, generator=random, dtype=torch.float64)
    src, dst = torch.cat([pairs, pairs.flip(1)]).T
    graph = make_graph((src, dst), num_nodes=nodes)
    h = torch.randn(nodes, D, generator=random, dtype=torch.float64)
    return graph, h, torch.cat([one_way, one_way])


def make_layer(kind, learn_eps=True):
    torch.manual_seed(1)
    if kind == "egin":
        conv = EGINConv(MLP(D + Q, H, H), learn_eps)
    elif kind == "egin_c":
        conv = EGINCConv(MLP(D * Q, H, H), learn_eps)
    elif kind == "egin_m":
        conv = EGINMConv(MLP(R, H, H), MLP(D + Q, R, R, norm="none"), learn_eps)
    else:
        conv = EGINEConv(MLP(D + R, H, H), MLP(Q, R, R, norm="none"), learn_eps)
    if learn_eps:
        torch.nn.init.constant_(conv.eps, 0.3)
    return conv.double()


def dense_egin(conv, graph, h, e):
    rows = []
    for i in range(graph.num_nodes()):
        total = (1 + conv.eps) * torch.cat([h[i], torch.zeros(Q, dtype=h.dtype)])  # (h_i, δ)
        for j, edge in zip(*neighbors(graph, i), strict=True):
            total = total + torch.cat([h[j], e[edge]])
        rows.append(total)
    return conv.mlp(torch.stack(rows))


def dense_egin_c(conv, graph, h, e):
    rows = []
    for i in range(graph.num_nodes()):
        total = (1 + conv.eps) * torch.outer(h[i], torch.ones(Q, dtype=h.dtype))  # h_i ⊗ ψ
        for j, edge in zip(*neighbors(graph, i), strict=True):
            total = total + torch.outer(h[j], e[edge])
        rows.append(total.flatten())
    return conv.mlp(torch.stack(rows))


def dense_egin_e(conv, graph, h, e):
    rows = []
    for i in range(graph.num_nodes()):
        void = conv.edge_mlp(torch.zeros(1, Q, dtype=h.dtype))[0]
        total = (1 + conv.eps) * torch.cat([h[i], void])  # (h_i, MLP₂(δ))
        for j, edge in zip(*neighbors(graph, i), strict=True):
            total = total + torch.cat([h[j], conv.edge_mlp(e[edge : edge + 1])[0]])
        rows.append(total)
    return conv.mlp(torch.stack(rows))


def dense_egin_m(conv, graph, h, e):
    def message(h_j, e_ij):
        return conv.tuple_mlp(torch.cat([h_j, e_ij]).unsqueeze(0))[0]

    rows = []
    for i in range(graph.num_nodes()):
        total = (1 + conv.eps) * message(h[i], torch.zeros(Q, dtype=h.dtype))  # MLP₂(h_i, δ)
        for j, edge in zip(*neighbors(graph, i), strict=True):
            total = total + message(h[j], e[edge])
        rows.append(total)
    return conv.mlp(torch.stack(rows))


def neighbors(graph, i):
    src, _, edges = graph.in_edges(i, form="all")
    return src.tolist(), edges.tolist()


DENSE = {"egin": dense_egin, "egin_c": dense_egin_c, "egin_e": dense_egin_e, "egin_m": dense_egin_m}
KINDS = pytest.mark.parametrize("kind", DENSE)


@KINDS
@pytest.mark.parametrize("learn_eps", [True, False])
def test_layer_equals_its_equation_with_gradients(kind, learn_eps):
    conv = make_layer(kind, learn_eps)
    graph, h, e = random_graph()
    results = []
    for forward in (conv, lambda *inputs: DENSE[kind](conv, *inputs)):
        leaves = (h.clone().requires_grad_(), e.clone().requires_grad_(), *conv.parameters())
        out = forward(graph, *leaves[:2])
        weights = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
        results.append((out, *torch.autograd.grad((out * weights).sum(), leaves)))
    for fused, dense in zip(*results, strict=True):
        torch.testing.assert_close(fused, dense, rtol=1e-10, atol=1e-12)


@KINDS
def test_eps_is_a_parameter_only_with_learn_eps(kind):
    assert [n for n, _ in make_layer(kind, True).named_parameters() if n == "eps"] == ["eps"]
    fixed = make_layer(kind, False)
    assert "eps" not in dict(fixed.named_parameters())
    assert float(fixed.eps) == 0


@KINDS
def test_permutation_of_nodes_and_of_edges(kind):
    conv = make_layer(kind).eval()
    graph, h, e = random_graph()
    out = conv(graph, h, e)
    nodes, edges = torch.randperm(graph.num_nodes()), torch.randperm(graph.num_edges())
    src, dst = graph.edges()
    shuffled = make_graph((src[edges], dst[edges]), num_nodes=graph.num_nodes())
    torch.testing.assert_close(conv(shuffled, h, e[edges]), out)
    place = nodes.argsort()  # node nodes[i] moves to i
    moved = make_graph((place[src], place[dst]), num_nodes=graph.num_nodes())
    torch.testing.assert_close(conv(moved, h[nodes], e), out[nodes])


@KINDS
def test_a_batch_equals_its_graphs_one_by_one(kind):
    conv = make_layer(kind).eval()
    inputs = [random_graph(seed=seed) for seed in range(3)]
    graphs, hs, es = zip(*inputs, strict=True)
    together = conv(batch_graphs(list(graphs)), torch.cat(hs), torch.cat(es))
    torch.testing.assert_close(together, torch.cat([conv(*one) for one in inputs]))


@KINDS
@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("training", [True, False])
def test_graphs_without_edges_and_with_one_node(kind, nodes, training):
    conv = make_layer(kind).train(training)
    graph = make_graph(([], []), num_nodes=nodes)
    h = torch.randn(nodes, D, dtype=torch.float64, requires_grad=True)
    e = torch.zeros(0, Q, dtype=torch.float64)
    out = conv(graph, h, e)
    assert out.shape == (nodes, H)
    out.sum().backward()
    assert torch.isfinite(h.grad).all()
    if not training:
        torch.testing.assert_close(out, DENSE[kind](conv, graph, h, e))


@KINDS
def test_edge_features_matter(kind):
    conv = make_layer(kind).eval()
    graph, h, e = random_graph()
    assert not torch.allclose(conv(graph, h, e), conv(graph, h, e.flip(0)))


@KINDS
def test_bfloat16_autocast_keeps_sums_in_full_precision(kind):
    conv = make_layer(kind).float().eval()
    graph, h, e = random_graph()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = conv(graph, h.bfloat16(), e.float())
    torch.testing.assert_close(out.float(), conv(graph, h.float(), e.float()), rtol=0.1, atol=0.2)
