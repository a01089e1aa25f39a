"""Any model of the zoo as a scikit-learn classifier, of classes or of several labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from egin_dgl.api.estimator import GraphEstimator
from egin_dgl.api.regressor import target_names
from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.errors import DataError


class EGINClassifier(ClassifierMixin, GraphEstimator):
    """Graph classifier with scikit-learn's interface, trained as `egin train` trains a fold.

    Graphs are lists of DGL, networkx or PyG graphs, of SMILES, or of RDKit molecules. Arguments that are None have the value
    of the configuration in conf/.

    Args:
        model: option of conf/model: egin, egin_c, egin_e, gin, …, or a kernel. Default: ``"egin_e"``.
        hidden_dim: width of the model; ignored by kernels and the majority class, so that a grid search may include them.
        num_layers, edge_dim, learn_eps, dropout: of the model, an error if it has no such option.
        epochs, batch_size, lr: of training.
        validation: fraction of the graphs, stratified, that selects the epoch and calibrates probabilities; 0 takes the last
            epoch, not calibrated. Default: ``0.1``.
        features: of molecules, "tu" (atom symbol, bond type) or "rich" (also charge, hydrogens, …). Default: ``"tu"``.
        on_invalid: molecules that RDKit cannot parse: "raise" an error, or "skip" them in training and predict NaN (None
            instead of a class). Default: ``"raise"``.
        node_labels, node_attributes, edge_labels, edge_attributes: names of the node and edge data to use; None: all, real
            numbers as attributes, strings and integers as labels.
        options: any other options of the command line, such as ``{"trainer.standardize": True, "ewl": "colors"}``.
        seed: of weights, shuffling and the validation set. Default: ``0``.
        device: auto, cpu, cuda, … Default: ``"auto"``.

    Attributes:
        classes_: sorted class labels; numbers of the columns of y if it has several.
        fold_: the trained model, a `TrainedFold`.
        result_: its training history and logits, a `FoldResult`.

    Example::

        >>> import networkx as nx
        >>> from egin_dgl.api import EGINClassifier
        >>> graphs = [nx.cycle_graph(n) for n in (3, 4, 5, 6)] + [nx.path_graph(n) for n in (3, 4, 5, 6)]
        >>> labels = ["cycle"] * 4 + ["path"] * 4
        >>> model = EGINClassifier(hidden_dim=8, epochs=2, validation=0).fit(graphs, labels)
        >>> model.predict_proba(graphs).shape
        (8, 2)
    """

    def fit(self, graphs: Sequence, y: Any, sample_weight: object = None) -> "EGINClassifier":
        """Train on graphs and their classes (G,), strings, integers or booleans, or labels (G, T) of 0, 1 and NaN.

        `sample_weight` (G,) weights the graphs in the loss.
        """
        if y is None:
            raise ValueError("EGINClassifier requires y to be passed, but the target y is None.")
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            labels = as_indicators(y)
            info = DatasetInfo(0, 0, task="multilabel", target_names=target_names(y, labels.shape[1]))
            classes = np.arange(labels.shape[1])
        else:
            classes, labels = np.unique(as_classes(y), return_inverse=True)
            if len(classes) < 2:
                raise DataError(f"y must have two or more classes, got {classes.tolist()}")
            names = tuple(str(value) for value in classes.tolist())
            info = DatasetInfo(0, 0, len(names), class_names=names, target_names=("label",))
        self._fit(graphs, labels, info, sample_weight)
        self.classes_ = classes
        return self

    def predict_proba(self, graphs: Sequence) -> np.ndarray:
        """Probabilities of the classes, (G, classes) with columns as in `classes_`, or of each label to be 1, (G, T)."""
        return self._predict(graphs)

    def predict(self, graphs: Sequence) -> np.ndarray:
        """The most probable class of each graph, (G,), or its labels, (G, T)."""
        found = self.predict_proba(graphs)
        invalid = np.isnan(found).any(axis=1)
        if not self.fold_.info.classes:
            labels = (found > 0.5).astype(np.int64)
            return np.where(invalid[:, None], np.nan, labels) if invalid.any() else labels
        classes = self.classes_[np.nan_to_num(found).argmax(axis=1)]
        if invalid.any():
            classes = classes.astype(object)
            classes[invalid] = None
        return classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def as_classes(y: Sequence) -> np.ndarray:
    """One class for each graph, (G,); missing and continuous values are a ValueError, as in scikit-learn."""
    if pd.Series(list(y), dtype=object).isna().any():
        raise ValueError("Input y contains NaN.")
    labels = column_or_1d(np.asarray(y), warn=True)
    labels = np.array(labels.tolist()) if labels.dtype == object else labels  # as pandas stores strings
    check_classification_targets(labels)
    return labels


def as_indicators(y: Any) -> np.ndarray:
    """Labels (G, T) of 0, 1 and NaN as float64; others are a ValueError."""
    try:
        labels = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("Unknown label type: y of several columns must hold 0, 1 or NaN.") from None
    if not (np.isnan(labels) | (labels == 0) | (labels == 1)).all():
        raise ValueError("Unknown label type: y of several columns must hold 0, 1 or NaN.")
    return labels
