"""Choice of the device, with the reason if a GPU cannot be used."""

import torch

from egin_dgl.errors import ConfigError


def pick_device(device: str) -> torch.device:
    """auto (a GPU if torch has one, else the CPU), cpu, cuda or cuda:i. DGL need not be able to use it."""
    if device == "auto":
        return torch.device("cpu" if why_no_cuda(torch.device("cuda")) else "cuda")
    chosen = torch.device(device)
    if chosen.type == "cuda" and (reason := why_no_cuda(chosen)):
        raise ConfigError(f"device={device} cannot be used: {reason}; use device=cpu or see docs/gpu.md")
    return chosen


def why_no_cuda(device: torch.device) -> str | None:
    """None if torch can use the device, else the reason."""
    if not torch.cuda.is_available():
        build = "has no CUDA" if torch.version.cuda is None else "finds no GPU"
        return f"torch {torch.__version__} {build}"
    if device.index is not None and device.index >= torch.cuda.device_count():
        return f"torch sees only {torch.cuda.device_count()} GPU(s)"
    return None
