"""What was trained, used: runs loaded again, answers for new graphs, and what the answers rest on."""

import egin_dgl.with_dgl  # noqa: F401
