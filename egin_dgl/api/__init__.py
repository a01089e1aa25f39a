"""The Python interface: a scikit-learn classifier, and trained runs."""

import egin_dgl.with_dgl  # noqa: F401
from egin_dgl.api.estimator import EGINClassifier
from egin_dgl.inference.trained_run import load_run

__all__ = ["EGINClassifier", "load_run"]
