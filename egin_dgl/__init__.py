"""Learning on graphs whose edges carry information."""

from egin_dgl.backend import import_dgl

import_dgl()

__version__ = "0.1.0"
