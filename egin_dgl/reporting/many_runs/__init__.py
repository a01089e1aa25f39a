"""For someone who wants a table over many runs."""
