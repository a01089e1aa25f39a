"""Reports on one run: progress, terminal table, figures, card, predictions and explanations."""
