"""All weights of a model in one tensor: what is done to each of them at every step is then one operation."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, NAdam, Optimizer, RAdam, RMSprop

ALIGNED = 16  # a weight starts at a multiple of so many numbers, where vector instructions read best
ELEMENTWISE = (Adam, AdamW, NAdam, RAdam, RMSprop, SGD)  # they treat a number alike, whatever tensor it is in


class FlatWeights:
    """The trainable weights of `model`, from now on views of one flat tensor per data type, and so are their gradients.

    The names and shapes of the model's own weights stay, and so does what it computes. Between two weights there may be
    a few zeros, whose gradients are zero.
    """

    def __init__(self, model: nn.Module):
        groups: dict[tuple[torch.dtype, torch.device], list[nn.Parameter]] = {}
        for weight in model.parameters():
            if weight.requires_grad:
                groups.setdefault((weight.dtype, weight.device), []).append(weight)
        self.tensors = [flattened(weights) for weights in groups.values()]

    @property
    def gradients(self) -> list[Tensor]:
        """One of each tensor: `flattened` gave it one, which steps fill."""
        return [flat.grad for flat in self.tensors if flat.grad is not None]

    def clear_gradients(self) -> None:
        for gradient in self.gradients:
            gradient.zero_()

    def clip_gradients(self, largest: float | None) -> Tensor:
        """The norm of all gradients together, which are then scaled down to `largest` where it is more."""
        gradients = self.gradients
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g).float() for g in gradients]))
        if largest is not None:
            scale = (largest / (norm + 1e-6)).clamp(max=1.0)
            for gradient in gradients:
                gradient.mul_(scale)
        return norm


def flattened(weights: list[nn.Parameter]) -> nn.Parameter:
    """One tensor with the values of all `weights`, which become views of it, their gradients views of its gradient."""
    starts, size = [], 0
    for weight in weights:
        starts.append(size)
        size += -(-weight.numel() // ALIGNED) * ALIGNED
    flat = nn.Parameter(weights[0].new_zeros(size))
    flat.grad = torch.zeros_like(flat)
    for weight, start in zip(weights, starts, strict=True):
        part = slice(start, start + weight.numel())
        flat.data[part] = weight.data.flatten()
        weight.data = flat.data[part].view(weight.shape)
        weight.grad = flat.grad[part].view(weight.shape)
    return flat


def make_optimizer(make: Callable[..., Optimizer], model: nn.Module, flat: FlatWeights) -> Optimizer:
    """An optimizer of all weights at once, in its fused kernel where this torch has one for the device.

    One that looks at whole matrices gets the model's own weights.
    """
    optimizer = fused_where_possible(make, flat.tensors)
    return optimizer if isinstance(optimizer, ELEMENTWISE) else fused_where_possible(make, model.parameters())


def fused_where_possible(make: Callable[..., Optimizer], weights) -> Optimizer:
    weights = list(weights)
    try:
        return make(weights, fused=True)
    except (RuntimeError, TypeError):
        return make(weights)
