"""Readers: one file per input format, each from files or objects to `GraphArrays`."""
