r"""Exponential moving average (EMA) of the weights, with BatchNorm statistics computed for these weights.

The weights of a small model fluctuate from step to step, and so do its logits. Evaluated and saved is the average

.. math:: \bar w_t = d_t \bar w_{t-1} + (1 - d_t) w_t, \quad d_t = \min(decay, \tfrac{t-1}{t})

which is the mean of all steps while t < 1 / (1 − decay), and an exponential average afterwards. torch's `AveragedModel`
does the same tensor by tensor and synchronizes with the GPU at every step.
"""

import copy
from collections.abc import Callable

import torch
from torch import nn

from egin_dgl.models.dispatch import ShareMoments, own_moments
from egin_dgl.training.flat_parameters import FlatParameters
from egin_dgl.training.precise_bn import Batches, update_bn_stats


class ModelEma:
    """Averaged copy of a model in training.

    Args:
        model: in training.
        parameters: those of `model`.
        decay: of the average, 0 ≤ decay < 1; None: the copy has the current weights.
        precise_bn: recompute BatchNorm statistics before evaluation, instead of the running averages of training,
            which lag behind the weights: a feature of small variance amplifies the lag by up to 1/√eps.
    """

    def __init__(self, model: nn.Module, parameters: FlatParameters, decay: float | None, precise_bn: bool):
        self.source, self.source_parameters = model, parameters
        self.decay, self.precise_bn = decay, precise_bn
        self.steps = 0
        self.model = copy.deepcopy(model).eval()
        self.parameters = FlatParameters(self.model)

    @torch.no_grad()
    def update(self) -> None:
        """Update the average after an optimizer step."""
        self.steps += 1
        if self.decay is not None:
            self.move_towards_source(1 - min(self.decay, (self.steps - 1) / self.steps))

    def move_towards_source(self, weight: float) -> None:
        for average, current in zip(self.parameters.tensors, self.source_parameters.tensors, strict=True):
            average.data.lerp_(current.data, weight)

    @torch.no_grad()
    def sync(self) -> nn.Module:
        """The model to evaluate, in evaluation mode, with the running statistics of training."""
        if self.decay is None:
            self.move_towards_source(1.0)
        for buffer, current in zip(self.model.buffers(), self.source.buffers(), strict=True):
            buffer.copy_(current)
        return self.model

    def update_bn(
        self, batches: Batches, call: Callable, share_moments: ShareMoments = own_moments
    ) -> nn.Module:
        """The model to evaluate, with precise BatchNorm statistics over `batches`; arguments as of `update_bn_stats`."""
        model = self.sync()
        if self.precise_bn:
            update_bn_stats(model, batches, call, share_moments)
        return model

    def state_dict(self) -> dict:
        return {"steps": self.steps, "weights": [tensor.data for tensor in self.parameters.tensors]}

    def load_state_dict(self, state: dict) -> None:
        self.steps = state["steps"]
        for tensor, saved in zip(self.parameters.tensors, state["weights"], strict=True):
            tensor.data.copy_(saved)
