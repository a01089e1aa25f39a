"""A run, and a sweep of runs, on disk: the only room that knows the name or the shape of a file in their folders."""
