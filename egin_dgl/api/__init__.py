"""The Python interface: a scikit-learn classifier and regressor, and trained runs."""

from egin_dgl.api.classifier import EGINClassifier
from egin_dgl.api.regressor import EGINRegressor
from egin_dgl.inference.trained_run import load_run

__all__ = ["EGINClassifier", "EGINRegressor", "load_run"]
