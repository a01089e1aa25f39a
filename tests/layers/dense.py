"""What the dense references share: a small graph, and two ways of computing that must agree in values and gradients."""

import torch
from graphs import make_graph

D, Q, H = 5, 3, 4


def directed_graph(nodes=7, edges=17, seed=0):
    """Directed, the last node isolated; edge features non-negative, some of them zero."""
    random = torch.Generator().manual_seed(seed)
    pairs = torch.cartesian_prod(torch.arange(nodes - 1), torch.arange(nodes - 1))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    src, dst = pairs[torch.randperm(len(pairs), generator=random)[:edges]].T
    x = torch.randn(nodes, D, generator=random, dtype=torch.float64)
    e = torch.rand(edges, Q, generator=random, dtype=torch.float64)
    return make_graph((src, dst), num_nodes=nodes), x, torch.where(e < 0.3, 0.0, e)


def matrix(graph, values):
    """M_ij = the value of edge j → i: (E,) -> (N, N)."""
    src, dst = graph.edges()
    size = graph.num_nodes()
    return torch.zeros(size, size, dtype=values.dtype).index_put((dst, src), values)


def assert_same(conv, reference, graph, *features):
    """`conv(graph, *features)` equals `reference(conv, graph, *features)`, and so do the gradients of everything."""
    results = []
    for forward in (conv, lambda *inputs: reference(conv, *inputs)):
        leaves = [*(feature.clone().requires_grad_() for feature in features), *conv.parameters()]
        outputs = forward(graph, *leaves[: len(features)])
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        total = sum((out * weights(out)).sum() for out in outputs)
        results.append((*outputs, *torch.autograd.grad(total, leaves)))
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-11)


def weights(out):
    return torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
