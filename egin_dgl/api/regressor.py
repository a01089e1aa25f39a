"""Any network of the zoo as a scikit-learn regressor, of one or more targets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from egin_dgl.api.estimator import GraphEstimator
from egin_dgl.data.dataset import DatasetInfo


class EGINRegressor(RegressorMixin, GraphEstimator):
    """Graph regressor with scikit-learn's interface, trained as `egin train` trains a fold.

    Graphs and arguments are those of `EGINClassifier`. Targets are standardised for training and predicted in their units.

    Example::

        >>> import networkx as nx
        >>> from egin_dgl.api import EGINRegressor
        >>> graphs = [nx.cycle_graph(n) for n in range(3, 11)]
        >>> model = EGINRegressor(hidden_dim=8, epochs=2, validation=0).fit(graphs, [0.5 * len(g) for g in graphs])
        >>> model.predict(graphs).shape
        (8,)
    """

    def fit(self, graphs: Sequence, y: Any, sample_weight: object = None) -> "EGINRegressor":
        """Train on graphs and their targets, (G,) or (G, T), NaN where missing; `sample_weight` (G,) weights the graphs."""
        values = as_values(y)
        labels = values.reshape(len(values), -1)
        info = DatasetInfo(0, 0, task="regression", target_names=target_names(y, labels.shape[1]))
        self._fit(graphs, labels, info, sample_weight)
        self.is_column_ = values.ndim == 1
        return self

    def predict(self, graphs: Sequence) -> np.ndarray:
        """Predicted values in the units of the targets, of the shape of y."""
        check_is_fitted(self, "fold_")
        found = self._predict(graphs)
        return found[:, 0] if self.is_column_ else found


def as_values(y: Any) -> np.ndarray:
    """Real numbers (G,) or (G, T), NaN where missing; others are a ValueError in scikit-learn's words."""
    if y is None:
        raise ValueError("EGINRegressor requires y to be passed, but the target y is None.")
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers: {error}") from None
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise ValueError(f"y should be a 1d or 2d array, got an array of shape {values.shape} instead.")
    if np.isinf(values).any():
        raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
    return values


def target_names(y: Any, count: int) -> tuple[str, ...]:
    """Names of the columns of a data frame, of a series, or y, y0, y1, …"""
    if isinstance(y, pd.DataFrame):
        return tuple(map(str, y.columns))
    if count == 1:
        return (str(getattr(y, "name", None) or "y"),)
    return tuple(f"y{i}" for i in range(count))
