"""Imports DGL; first import of every package that uses it."""

from egin_dgl.backend import import_dgl

import_dgl()
