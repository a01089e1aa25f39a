"""Imports DGL where it is installed; first import of every package that uses graphs."""

from egin_dgl.backend import has_dgl

has_dgl()
