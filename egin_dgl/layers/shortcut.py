"""When a module may be computed on a batch by a shorter way than its definition, `forward`."""

from functools import cache

import torch
from torch import nn


def stands(shortcut: str, module: nn.Module, *definition: str) -> bool:
    """Whether the method `shortcut` stands for the module's `forward` and other methods that define it.

    It does not where a subclass changed the one without the other, and where somebody's hook waits for the call.
    """
    kind: type = type(module)
    return defined_together(kind, shortcut, "forward", *definition) and not (
        module._forward_hooks or module._forward_pre_hooks
    )


@cache
def defined_together(kind: type, *methods: str) -> bool:
    """Whether the nearest ancestor that defines any of these methods defines all of them."""
    for ancestor in kind.__mro__:
        defined = [method in vars(ancestor) for method in methods]
        if any(defined):
            return all(defined)
    return False


def autocasting(device: torch.device) -> bool:
    """Whether mixed precision is on for this kind of device."""
    try:
        return torch.is_autocast_enabled(device.type)
    except TypeError:  # before torch 2.4 each kind had a function of its own
        return torch.is_autocast_cpu_enabled() if device.type == "cpu" else torch.is_autocast_enabled()
