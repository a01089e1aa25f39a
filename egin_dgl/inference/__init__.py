"""Use of finished runs: predictions, embeddings and explanations."""
