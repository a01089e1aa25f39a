"""Every random number follows from (run seed, fold, epoch), so a resumed run needs no generator state."""

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
    else:  # to be told anew of every kind of device that is not there takes a fiftieth of an epoch
        torch.default_generator.manual_seed(seed)
    return torch.Generator().manual_seed(seed)


@cache
def has_accelerator() -> bool:
    """Whether torch computes on anything but the CPU here."""
    kinds = torch.cuda, torch.backends.mps, getattr(torch, "xpu", None)  # the last since torch 2.3
    return any(kind.is_available() for kind in kinds if kind is not None)
