"""Importing this imports DGL: the first line of every room whose files use it."""

from egin_dgl.backend import import_dgl

import_dgl()
