"""Fold workers: processes, CPU budget, signals."""
