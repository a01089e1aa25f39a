"""Colour refinement that sees edges: E-WL, beside 1-WL and E-WL-EA, on whole sets of graphs."""

from importlib import import_module

import egin_dgl.with_dgl  # noqa: F401
from egin_dgl.ewl.audit import Audit, audit, duplicate_groups
from egin_dgl.ewl.features import ColorVocabulary
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.ewl.isomorphism import Verdict, distinguish
from egin_dgl.ewl.refinement import Refinement, refine

__all__ = [
    "Audit",
    "ColorVocabulary",
    "GraphSet",
    "Refinement",
    "Verdict",
    "WLKernel",
    "as_graph_set",
    "audit",
    "draw_refinement",
    "duplicate_groups",
    "make_svm",
    "refine",
    "distinguish",
]

# What needs scikit-learn or matplotlib is imported when it is used.
_LATER = {"WLKernel": "kernel", "make_svm": "kernel", "draw_refinement": "draw"}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
