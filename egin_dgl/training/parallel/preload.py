"""Modules that the forkserver imports once for all fold workers."""

from contextlib import suppress

from egin_dgl.imports import gc_disabled

# The parent process reports a broken installation; here it would be a second traceback.
with suppress(Exception), gc_disabled():
    import egin_dgl.training.nested
    import egin_dgl.training.parallel.workers  # noqa: F401
