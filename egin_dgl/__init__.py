"""Learning on graphs whose edges carry information."""

__version__ = "0.1.0"
