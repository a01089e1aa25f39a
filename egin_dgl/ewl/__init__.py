"""Colour refinement with edge labels: 1-WL, E-WL and E-WL-EA on whole sets of graphs."""

from importlib import import_module

from egin_dgl.ewl.audit import Audit, audit, duplicate_groups
from egin_dgl.ewl.color_vocabulary import ColorVocabulary
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.ewl.isomorphism import Verdict, distinguish
from egin_dgl.ewl.preprocessing import ColorFeatures
from egin_dgl.ewl.refinement import Refinement, refine

__all__ = [
    "Audit",
    "ColorFeatures",
    "ColorVocabulary",
    "GraphSet",
    "Refinement",
    "Verdict",
    "WLKernel",
    "as_graph_set",
    "audit",
    "distinguish",
    "draw_refinement",
    "duplicate_groups",
    "make_svm",
    "refine",
]

# Imported on first use, as they need scikit-learn or matplotlib.
_LAZY = {"WLKernel": "kernel", "make_svm": "kernel", "draw_refinement": "draw"}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
