"""ModelEma and FlatParameters."""

import copy
from functools import partial

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, RMSprop

from egin_dgl.training.ema import ModelEma
from egin_dgl.training.flat_parameters import FlatParameters, make_optimizer

pytestmark = pytest.mark.usefixtures("numbers")


def network():
    """No bias before BatchNorm: its gradient is zero but for rounding, which Adam would amplify."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7, bias=False), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 3))


def step(model, optimizer, number):
    rows = torch.randn(11, 5, generator=torch.Generator().manual_seed(number))
    model(rows).square().sum().backward()
    optimizer.step()


def test_flat_parameters_train_like_separate_ones():
    """Same steps by the usual optimizers."""
    for make in (partial(kind, lr=0.01) for kind in (Adam, AdamW, RMSprop, SGD)):
        plain, flattened = network(), network()
        flat = FlatParameters(flattened)
        optimizers = make(plain.parameters()), make_optimizer(make, flattened, flat)
        for number in range(4):
            optimizers[0].zero_grad()
            flat.zero_grad()
            step(plain, optimizers[0], number)
            step(flattened, optimizers[1], number)
        for name, tensor in plain.state_dict().items():
            torch.testing.assert_close(flattened.state_dict()[name], tensor, rtol=1e-5, atol=1e-6)


def test_optimizer_that_is_not_elementwise_gets_separate_parameters():
    model = network()
    optimizer = make_optimizer(torch.optim.LBFGS, model, FlatParameters(model))
    assert [w.shape for w in optimizer.param_groups[0]["params"]] == [w.shape for w in model.parameters()]


def test_clip_grad_norm_equals_torch():
    one, two = network(), network()
    flat = FlatParameters(two)
    for model in (one, two):
        model(torch.ones(4, 5)).sum().backward()
    norm = nn.utils.clip_grad_norm_(one.parameters(), 0.01)
    torch.testing.assert_close(flat.clip_grad_norm(0.01), norm)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_average_is_a_mean_first_and_exponential_later(decay):
    model = network()
    weights = FlatParameters(model)
    ema = ModelEma(model, weights, decay, precise_bn=False)
    optimizer = torch.optim.SGD(weights.tensors, lr=0.01)
    seen, found = [], []
    for number in range(30):
        step(model, optimizer, number)
        ema.update()
        seen.append(model[0].weight.detach().clone())
        found.append(ema.update_bn([], None)[0].weight.detach().clone())
    whole = round(1 / (1 - decay))
    torch.testing.assert_close(found[whole - 1], torch.stack(seen[:whole]).mean(0), rtol=1e-4, atol=1e-5)
    for number in range(whole, 30):
        expected = decay * found[number - 1] + (1 - decay) * seen[number]
        torch.testing.assert_close(found[number], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("decay", "precise_bn"), [(0.9, True), (None, True), (0.9, False), (None, False)])
def test_ema_does_not_change_the_trained_model(decay, precise_bn):
    alone, averaged = network(), network()
    results = []
    for model, follow in ((alone, False), (averaged, True)):
        weights = FlatParameters(model)
        ema = ModelEma(model, weights, decay if follow else None, precise_bn and follow)
        optimizer = torch.optim.Adam(weights.tensors, lr=0.01)
        for number in range(5):
            model.train()
            weights.zero_grad()
            step(model, optimizer, number)
            ema.update()
            ema.update_bn([torch.randn(9, 5)], lambda m, rows: m(rows))
        results.append(copy.deepcopy(model.state_dict()))
    for name, tensor in results[0].items():
        assert torch.equal(tensor, results[1][name])


def test_without_decay_the_copy_has_the_current_weights():
    model = network()
    weights = FlatParameters(model)
    ema = ModelEma(model, weights, None, precise_bn=True)
    step(model, torch.optim.Adam(weights.tensors, lr=0.1), 0)
    rows = torch.randn(9, 5)
    current = ema.update_bn([rows], lambda m, batch: m(batch))
    for own, of_model in zip(current.parameters(), model.parameters(), strict=True):
        assert torch.equal(own, of_model)
    torch.testing.assert_close(current[1].running_mean, current[0](rows).mean(0))


def test_frozen_parameters_stay_unchanged():
    model = network()
    model[0].weight.requires_grad_(False)
    weights = FlatParameters(model)
    ema = ModelEma(model, weights, 0.9, precise_bn=False)
    frozen = model[0].weight.clone()
    step(model, torch.optim.Adam(weights.tensors, lr=0.1), 0)
    ema.update()
    current = ema.update_bn([], None)
    assert torch.equal(current[0].weight, frozen) and torch.equal(model[0].weight, frozen)
    assert torch.equal(current[3].weight, model[3].weight)


def test_buffers_that_training_replaces_are_followed():
    """A model may assign a new tensor to a buffer, as many do with averages of their own."""
    model = network()
    ema = ModelEma(model, FlatParameters(model), 0.9, precise_bn=False)
    model[1].running_mean = model[1].running_mean + 3
    assert torch.equal(ema.sync()[1].running_mean, model[1].running_mean)
