"""Attacks on the app, shared by `scripts/robustness.py`, which tries many, and by the tests, which try a few of each."""
