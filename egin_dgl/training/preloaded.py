"""What fold workers import, imported once by the server that they are forked from."""

from contextlib import suppress

from egin_dgl.loading import loading

# A broken installation is told by the process that asked, in one sentence; here it would be a traceback beside it.
with suppress(Exception), loading():
    import egin_dgl.training.engine
    import egin_dgl.training.nested
    import egin_dgl.training.workers  # noqa: F401
