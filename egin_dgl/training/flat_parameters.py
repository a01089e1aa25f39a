"""All parameters of a model in one tensor, so that zeroing, clipping, averaging and the optimizer are one operation each."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, NAdam, Optimizer, RAdam, RMSprop

ALIGNMENT = 16  # elements; vector instructions read best from such multiples
ELEMENTWISE = (Adam, AdamW, NAdam, RAdam, RMSprop, SGD)  # updates that do not depend on tensor shapes


class FlatParameters:
    """Trainable parameters of `model`, turned into views of one flat tensor per data type; gradients likewise.

    Names, shapes and values of the model's parameters stay the same. Gaps between them are zeros with zero gradient.
    """

    def __init__(self, model: nn.Module):
        groups: dict[tuple[torch.dtype, torch.device], list[nn.Parameter]] = {}
        for parameter in model.parameters():
            if parameter.requires_grad:
                groups.setdefault((parameter.dtype, parameter.device), []).append(parameter)
        self.tensors = [flatten_parameters(parameters) for parameters in groups.values()]

    @property
    def grads(self) -> list[Tensor]:
        return [flat.grad for flat in self.tensors if flat.grad is not None]

    def zero_grad(self) -> None:
        for grad in self.grads:
            grad.zero_()

    def clip_grad_norm(self, max_norm: float | None) -> Tensor:
        """Norm of all gradients together, which are scaled down to `max_norm` if it is larger."""
        grads = self.grads
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g).float() for g in grads]))
        if max_norm is not None:
            scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
            for grad in grads:
                grad.mul_(scale)
        return norm


def flatten_parameters(parameters: list[nn.Parameter]) -> nn.Parameter:
    """One tensor with the values of all `parameters`, which become views of it, as do their gradients."""
    starts, size = [], 0
    for parameter in parameters:
        starts.append(size)
        size += -(-parameter.numel() // ALIGNMENT) * ALIGNMENT
    flat = nn.Parameter(parameters[0].new_zeros(size))
    flat.grad = torch.zeros_like(flat)
    for parameter, start in zip(parameters, starts, strict=True):
        view = slice(start, start + parameter.numel())
        flat.data[view] = parameter.data.flatten()
        parameter.data = flat.data[view].view(parameter.shape)
        parameter.grad = flat.grad[view].view(parameter.shape)
    return flat


def make_optimizer(make: Callable[..., Optimizer], model: nn.Module, flat: FlatParameters) -> Optimizer:
    """Optimizer of the flat tensors, fused if torch supports it on the device.

    An optimizer that is not elementwise gets the model's own parameters.
    """
    optimizer = fused_if_possible(make, flat.tensors)
    return optimizer if isinstance(optimizer, ELEMENTWISE) else fused_if_possible(make, model.parameters())


def fused_if_possible(make: Callable[..., Optimizer], parameters: Iterable[nn.Parameter]) -> Optimizer:
    parameters = list(parameters)
    try:
        return make(parameters, fused=True)
    except (RuntimeError, TypeError):
        return make(parameters)
