r"""The model that is evaluated and saved: averaged weights, with batch statistics measured at these very weights.

The weights of a small model jump about from step to step, and its scores with them. Their average does not:

.. math:: \bar w_t = d_t \bar w_{t-1} + (1 - d_t) w_t, \quad d_t = \min(decay, \tfrac{t-1}{t})

which is the mean of all steps so far while there are fewer than 1 / (1 − decay), and an exponential average after that.
torch's `AveragedModel` does the same tensor by tensor, and waits for a GPU at every step.
"""

import copy
from collections.abc import Callable

import torch
from torch import nn

from egin_dgl.training.flat_parameters import FlatParameters
from egin_dgl.training.precise_bn import Batches, measure


class ModelEma:
    """Follows a model in training; `current` is what should be looked at after an epoch.

    Args:
        model: in training.
        weights: those of `model`.
        decay: of the average, 0 ≤ decay < 1; None: the weights as they are.
        measured: measure the statistics of batch normalisation anew, instead of taking the running averages of training,
            which lag behind the weights: a feature of small variance multiplies the lag by up to 1/√eps.
    """

    def __init__(self, model: nn.Module, weights: FlatParameters, decay: float | None, measured: bool):
        self.weights, self.decay, self.measured = weights, decay, measured
        self.steps = 0
        self.follows = decay is not None or measured
        self.copy = copy.deepcopy(model) if self.follows else model
        self.average = FlatParameters(self.copy) if self.follows else weights
        self.buffers = list(self.copy.buffers()), list(model.buffers())

    @torch.no_grad()
    def step(self) -> None:
        """The model has made a step."""
        self.steps += 1
        if self.decay is not None:
            self.take(1 - min(self.decay, (self.steps - 1) / self.steps))

    def take(self, share: float) -> None:
        """Move by this share of the way to the weights of the model."""
        for average, current in zip(self.average.tensors, self.weights.tensors, strict=True):
            average.data.lerp_(current.data, share)

    @torch.no_grad()
    def followed(self) -> nn.Module:
        """The model to evaluate, in evaluation mode, its statistics still the running averages of training."""
        if self.follows:
            if self.decay is None:
                self.take(1.0)
            if self.buffers[0]:
                torch._foreach_copy_(*self.buffers)
        return self.copy.eval() if self.copy.training else self.copy

    def current(self, batches: Batches, call: Callable) -> nn.Module:
        """The same with statistics measured; `batches` are the training part, `call(model, batch)` a pass."""
        model = self.followed()
        if self.measured:
            measure(model, batches, call)
        return model

    def state_dict(self) -> dict:
        return {"steps": self.steps, "weights": [tensor.data for tensor in self.average.tensors]}

    def load_state_dict(self, state: dict) -> None:
        self.steps = state["steps"]
        for tensor, saved in zip(self.average.tensors, state["weights"], strict=True):
            tensor.data.copy_(saved)
