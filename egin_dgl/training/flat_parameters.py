"""All weights of a model in one tensor: what is done to each of them at every step is then one operation."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, NAdam, Optimizer, RAdam, RMSprop, optimizer

ALIGNED = 16  # a weight starts at a multiple of so many numbers, where vector instructions read best
ASK_THE_COMPILER = ("add_param_group", "state_dict", "load_state_dict", "zero_grad")
EVERYWHERE = (optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks)
ELEMENTWISE = (Adam, AdamW, NAdam, RAdam, RMSprop, SGD)  # they treat a number alike, whatever tensor it is in


class FlatParameters:
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


def make_optimizer(make: Callable[..., Optimizer], model: nn.Module, flat: FlatParameters) -> Optimizer:
    """An optimizer of all weights at once, in its fused kernel where this torch has one for the device.

    One that looks at whole matrices gets the model's own weights.
    """
    with without_compiler():
        optimizer = fused_where_possible(make, flat.tensors)
        elementwise = isinstance(optimizer, ELEMENTWISE)
        return optimizer if elementwise else fused_where_possible(make, model.parameters())


def fused_where_possible(make: Callable[..., Optimizer], weights) -> Optimizer:
    weights = list(weights)
    try:
        return make(weights, fused=True)
    except (RuntimeError, TypeError):
        return make(weights)


@contextmanager
def without_compiler() -> Iterator[None]:
    """Inside, an optimizer is made, saved and restored without loading torch's compiler, which takes a second and only says
    that an optimizer is not to be compiled. In a torch that asks for it otherwise this does nothing."""
    methods: list[Any] = [inspect.unwrap(getattr(Optimizer, name)) for name in ASK_THE_COMPILER]
    unasked = [method for method in methods if not hasattr(method, "__dynamo_disable")]
    for method in unasked:
        method.__dynamo_disable = method
    try:
        yield
    finally:
        for method in unasked:
            del method.__dynamo_disable


def take_step(optimizer: Optimizer) -> None:
    """`optimizer.step()`, of torch's own optimizers without what torch lays around it: marks for its profiler, and its
    compiler, which is loaded for a second only to be told that it stays out."""
    plain = getattr(type(optimizer).step, "__wrapped__", None)
    hooks = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks, *EVERYWHERE
    if (
        type(optimizer) not in ELEMENTWISE
        or plain is None
        or any(hooks)
        or optimizer.defaults["differentiable"]
    ):
        optimizer.step()
        return
    with torch.no_grad():
        inspect.unwrap(plain)(optimizer)
    told: Any = (
        optimizer  # schedulers ask for a sign that it has made a step, those of older torch for a number
    )
    told._opt_called, told._step_count = True, getattr(optimizer, "_step_count", 0) + 1
