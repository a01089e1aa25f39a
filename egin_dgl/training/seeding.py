"""Random numbers are derived from (run seed, fold, epoch), so checkpoints need no generator state."""

import numpy as np
import torch


def derive_seed(*keys: int) -> int:
    """One well-mixed seed from several numbers."""
    return int(np.random.SeedSequence(keys).generate_state(1, np.uint64)[0]) >> 1


def seed_torch(*keys: int) -> torch.Generator:
    """Seed torch's global generators (weights, dropout) and return a CPU generator (shuffling) of the same seed."""
    seed = derive_seed(*keys)
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)
