"""Training: a fold, all folds, and what the histories say under each protocol."""
