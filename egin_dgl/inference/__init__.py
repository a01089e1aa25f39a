"""Use of finished runs: predictions, embeddings and explanations."""

import egin_dgl.with_dgl  # noqa: F401
