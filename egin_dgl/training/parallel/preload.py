"""Modules that the forkserver imports once for all fold workers."""

import atexit
import os
from contextlib import suppress

from egin_dgl.backend import gc_disabled

# The parent process reports a broken installation; here it would be a second traceback.
with suppress(Exception), gc_disabled():
    import torch

    import egin_dgl.training.nested
    import egin_dgl.training.parallel.workers  # noqa: F401

    # The first step of an optimizer imports torch's compiler, which takes a second or more.
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.0).step()

    import egin_dgl.fast  # noqa: F401  (last: a tree may be without it)

# The server exits without finalization, which takes a second while a pipe that reads the output of the command stays open, and
# in which triton, part of torch's CUDA builds, reports objects that are not collected as a leak.
atexit.register(os._exit, 0)
