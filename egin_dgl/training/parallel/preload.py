"""Modules that the forkserver imports once for all fold workers."""

import atexit
import gc
from contextlib import suppress

from egin_dgl.backend import gc_disabled

# The parent process reports a broken installation; here it would be a second traceback.
with suppress(Exception), gc_disabled():
    import torch

    import egin_dgl.training.nested
    import egin_dgl.training.parallel.workers  # noqa: F401

    # The first step of an optimizer imports torch's compiler, which takes a second or more.
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.0).step()

# The server exits with a garbage collection: triton, part of torch's CUDA builds, reports what is not collected as a leak.
atexit.register(gc.unfreeze)
