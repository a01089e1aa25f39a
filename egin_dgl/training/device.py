"""Choice of the device, with the reason if a GPU cannot be used."""

import torch

from egin_dgl.errors import ConfigError


def pick_device(device: str) -> torch.device:
    """auto (all GPUs if torch has one, else the CPU), cpu, cuda (all GPUs) or cuda:i. DGL need not be able to use it."""
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


def fold_device(device: torch.device, fold: int) -> torch.device:
    """The device of a fold: on all GPUs, fold i trains on GPU i mod n."""
    if device.type != "cuda" or device.index is not None:
        return device
    return torch.device("cuda", fold % torch.cuda.device_count())


def max_workers(device: torch.device) -> int | None:
    """Fold workers that a device takes by default: one per GPU; None on the CPU, where it is one per core."""
    if device.type != "cuda":
        return None
    return torch.cuda.device_count() if device.index is None else 1
