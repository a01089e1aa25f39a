"""What fold workers import, imported once by the server that they are forked from."""

from contextlib import suppress

from egin_dgl.imports import gc_disabled

# A broken installation is told by the process that asked, in one sentence; here it would be a traceback beside it.
with suppress(Exception), gc_disabled():
    import egin_dgl.training.nested
    import egin_dgl.training.parallel.workers  # noqa: F401
