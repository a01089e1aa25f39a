r"""Exact statistics for batch normalisation: of all training rows, at the weights that are to be evaluated.

.. math:: \mu = \tfrac1n \sum_r x_r, \quad \sigma^2 = \tfrac1n \sum_r (x_r - \mu)^2

over the n rows (nodes, or edges) of the whole training part, each layer fed by the layers before it with their own exact
statistics, dropout off. If the part fits one batch, one pass gives them all: a layer is measured when its input arrives.
Otherwise a pass over all batches measures the first layer that is not yet known, and the next pass goes one further:
memory is bounded by a batch, and the result depends on neither their sizes nor their order. `swa_utils.update_bn` makes do
with one pass, but averages the variances of batches around their own means, under layers whose statistics still change.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class Batches(Protocol):
    """Several of them can be passed over more than once."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator: ...


class Moments:
    """Mean and variance of rows that come in parts, joined without a loss of digits (Chan, Golub, LeVeque, 1979)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = self.squares = torch.zeros(0)  # of no rows yet

    def add(self, rows: Tensor) -> None:
        if len(rows) == 0:
            return
        rows = rows.double()
        mean = rows.mean(dim=0)
        squares = (rows - mean).square_().sum(dim=0)
        if self.count == 0:
            self.count, self.mean, self.squares = len(rows), mean, squares
            return
        total = self.count + len(rows)
        apart = mean - self.mean
        self.mean = self.mean + apart * (len(rows) / total)
        self.squares = self.squares + squares + apart.square() * (self.count * len(rows) / total)
        self.count = total

    def put_into(self, layer: _BatchNorm) -> None:
        """A layer that no row ever reaches keeps what it has."""
        if self.count and layer.running_mean is not None and layer.running_var is not None:
            layer.running_mean.copy_(self.mean)
            layer.running_var.copy_(self.squares / self.count)


class Reached(Exception):
    """A pass has come to the layer that is being measured; what follows it is not known yet."""


@torch.no_grad()
def measure(model: nn.Module, batches: Batches, call: Callable[[nn.Module, object], object]) -> None:
    """Set the running statistics of every batch normalisation in `model` to those of the rows of `batches`.

    `call(model, batch)` passes a batch through the model, which is left in evaluation mode.
    """
    layers = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]
    model.eval()
    known: set[_BatchNorm] = set()
    measured: dict[_BatchNorm, Moments] = {}  # the one layer that this pass measures

    def arrive(layer: _BatchNorm, inputs: tuple[Tensor, ...]) -> None:
        if layer in known:
            return
        if not measured:
            measured[layer] = Moments()
        if layer in measured:
            measured[layer].add(inputs[0])
        if len(batches) > 1:
            raise Reached
        settle()

    def settle() -> None:
        for layer, moments in measured.items():
            moments.put_into(layer)
        known.update(measured)
        measured.clear()

    hooks = [layer.register_forward_pre_hook(arrive) for layer in layers]
    try:
        while len(known) < len(layers):
            for batch in batches:
                with suppress(Reached):
                    call(model, batch)
            if not measured:  # what is left is never reached, or the one batch has told all
                break
            settle()
    finally:
        for hook in hooks:
            hook.remove()
