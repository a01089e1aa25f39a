"""Choice of the device, with the reason if a GPU cannot be used."""

import torch

from egin_dgl.backend import import_dgl
from egin_dgl.errors import ConfigError


def pick_device(device: str) -> torch.device:
    """auto (a GPU that torch and DGL can both use, else the CPU), cpu, cuda or cuda:i."""
    if device == "auto":
        return torch.device("cuda" if why_no_cuda(torch.device("cuda")) is None else "cpu")
    chosen = torch.device(device)
    if chosen.type == "cuda" and (reason := why_no_cuda(chosen)):
        raise ConfigError(
            f"device={device} cannot be used: {reason}; use device=cpu or see GPU in the README"
        )
    return chosen


def why_no_cuda(device: torch.device) -> str | None:
    """None if torch and DGL can both use the device, else the reason."""
    if not torch.cuda.is_available():
        build = "has no CUDA" if torch.version.cuda is None else "finds no GPU"
        return f"torch {torch.__version__} {build}"
    if device.index is not None and device.index >= torch.cuda.device_count():
        return f"torch sees only {torch.cuda.device_count()} GPU(s)"
    dgl = import_dgl()
    try:
        dgl.graph(([0], [0])).to(device)
    except Exception as error:  # DGL raises its own error type, which differs between versions
        return f"DGL {dgl.__version__} cannot use it ({str(error).splitlines()[-1]})"
    return None
