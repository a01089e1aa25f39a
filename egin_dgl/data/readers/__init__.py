"""Readers, one file per input format: files or objects → `GraphArrays`."""
