"""EGNN's products along edges equal those with the doubly stochastic matrix written out."""

import pytest
import torch
from dense import D, H, Q, assert_same, directed_graph, matrix
from graphs import make_graph

from egin_dgl.layers import EGNNAConv, EGNNCConv
from egin_dgl.layers.egnn import doubly_stochastic_root


def safe_divide(a, b):
    return torch.where(b > 0, a / torch.where(b > 0, b, torch.ones_like(b)), torch.zeros_like(a))


def doubly_stochastic(e_hat):
    """The paper's normalisation of one channel, entry by entry."""
    size = len(e_hat)
    row = safe_divide(e_hat, e_hat.sum(1, keepdim=True).expand_as(e_hat))
    total = torch.zeros_like(e_hat)
    for k in range(size):
        column = row[:, k]
        total = total + safe_divide(torch.outer(column, column), column.sum().expand(size, size))
    return total


def dense_c(conv, graph, x, e):
    channels = [doubly_stochastic(matrix(graph, e[:, p])) for p in range(Q)]
    return torch.cat([channel @ x @ conv.linear.weight.T for channel in channels], dim=1)


def dense_a(conv, graph, x, e):
    wx = x @ conv.linear.weight.T
    a_i, a_j = conv.attend.weight
    scores = torch.nn.functional.leaky_relu((wx @ a_i)[:, None] + (wx @ a_j)[None, :], 0.2)
    channels = [doubly_stochastic(scores.exp() * matrix(graph, e[:, p])) for p in range(Q)]
    return torch.cat([channel @ wx for channel in channels], dim=1)


@pytest.mark.parametrize(("make", "dense"), [(EGNNCConv, dense_c), (EGNNAConv, dense_a)])
def test_layer_equals_its_equation_with_gradients(make, dense):
    torch.manual_seed(1)
    conv, (graph, x, e) = make(D, H).double(), directed_graph()
    # Where a whole row or column of a channel is zero, E jumps and has no gradient: values there, both elsewhere.
    torch.testing.assert_close(conv(graph, x, e), dense(conv, graph, x, e))
    assert_same(conv, dense, graph, x, e + 0.1)


def test_the_root_is_that_of_a_doubly_stochastic_matrix():
    graph, _, e = directed_graph()
    root = doubly_stochastic_root(graph, e)
    for p in range(Q):
        b = matrix(graph, root[:, p])
        product = b @ b.T
        torch.testing.assert_close(product, doubly_stochastic(matrix(graph, e[:, p])))
        has_edge = (matrix(graph, e[:, p]) > 0).any(1).double()
        torch.testing.assert_close(product.sum(0), has_edge)
        torch.testing.assert_close(product.sum(1), has_edge)


def test_a_symmetric_channel_need_not_be_symmetric_after_the_rows():
    """The second step is what makes both sums one: rows alone do not."""
    graph = make_graph(([0, 1, 0, 2], [1, 0, 2, 0]))
    e = torch.ones(4, 1, dtype=torch.float64)
    rows = matrix(graph, e[:, 0]) / matrix(graph, e[:, 0]).sum(1, keepdim=True)
    assert not torch.allclose(rows.sum(0), torch.ones(3, dtype=torch.float64))
    b = matrix(graph, doubly_stochastic_root(graph, e)[:, 0])
    torch.testing.assert_close((b @ b.T).sum(0), torch.ones(3, dtype=torch.float64))


def test_negative_edge_features_count_as_zero():
    graph, x, e = directed_graph()
    conv = EGNNCConv(D, H).double()
    torch.testing.assert_close(conv(graph, x, torch.where(e == 0, -1.0, e)), conv(graph, x, e))


def test_normalized_features_are_not_normalised_again():
    graph, x, e = directed_graph()
    raw, normalized = EGNNCConv(D, H).double(), EGNNCConv(D, H, normalized=True).double()
    normalized.load_state_dict(raw.state_dict())
    torch.testing.assert_close(normalized(graph, x, doubly_stochastic_root(graph, e)), raw(graph, x, e))


@pytest.mark.parametrize("make", [EGNNCConv, EGNNAConv])
@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e4, 1e30])
def test_any_scale_of_edge_features_is_finite_with_gradients(make, scale):
    graph, x, e = directed_graph()
    x, e = x.float().requires_grad_(), (scale * e).float().requires_grad_()
    out = make(D, H)(graph, x, e)
    out.square().sum().backward()
    assert out.isfinite().all() and x.grad.isfinite().all() and e.grad.isfinite().all()
    assert (out == 0).all() == (scale == 0)
