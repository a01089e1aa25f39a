"""Random numbers are derived from (run seed, fold, epoch), so checkpoints need no generator state."""

from functools import cache

import numpy as np
import torch


def derive_seed(*keys: int) -> int:
    """One well-mixed seed from several numbers."""
    return int(np.random.SeedSequence(keys).generate_state(1, np.uint64)[0]) >> 1


def seed_torch(*keys: int) -> torch.Generator:
    """Seed torch's global generators (weights, dropout) and return a CPU generator (shuffling) of the same seed."""
    seed = derive_seed(*keys)
    if has_accelerator():
        torch.manual_seed(seed)
    else:  # manual_seed checks every kind of device, which takes 2 % of a short epoch
        torch.default_generator.manual_seed(seed)
    return torch.Generator().manual_seed(seed)


@cache
def has_accelerator() -> bool:
    """Whether torch has a device other than the CPU."""
    devices = torch.cuda, torch.backends.mps, getattr(torch, "xpu", None)  # xpu since torch 2.3
    return any(device.is_available() for device in devices if device is not None)
