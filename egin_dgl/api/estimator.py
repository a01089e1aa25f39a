"""Any model of the zoo as a scikit-learn classifier."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from egin_dgl.cli.config_dirs import compose_config
from egin_dgl.cli.error_messages import explain
from egin_dgl.cli.experiment import make_experiment
from egin_dgl.cli.validation import resolve_settings
from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.readers.graph_objects import kind_of
from egin_dgl.data.splits import Split, make_folds
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.inference.trained_fold import TrainedFold, load_fold
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.settings import Settings
from egin_dgl.training.parallel.workers import one_thread

ARGUMENTS = {  # that are options, by group
    "model": ("hidden_dim", "num_layers", "edge_dim", "learn_eps", "dropout"),
    "trainer": ("epochs", "batch_size"),
    "optimizer": ("lr",),
}
NO_GRAPHS = np.empty(0, dtype=np.int64)


class EGINClassifier(ClassifierMixin, BaseEstimator):
    """Graph classifier with scikit-learn's interface, trained as `egin train` trains a fold.

    Graphs are lists of DGL, networkx or PyG graphs, or of SMILES. Arguments that are None have the value of the
    configuration in conf/.

    Args:
        model: option of conf/model: egin, egin_c, egin_e, gin, …, or a kernel. Default: ``"egin_e"``.
        hidden_dim: width of the model; ignored by kernels and the majority class, so that a grid search may include them.
        num_layers, edge_dim, learn_eps, dropout: of the model, an error if it has no such option.
        epochs, batch_size, lr: of training.
        validation: fraction of the graphs, stratified, that selects the epoch and calibrates probabilities; 0 takes the last
            epoch, not calibrated. Default: ``0.1``.
        node_labels, node_attributes, edge_labels, edge_attributes: names of the node and edge data to use; None: all, real
            numbers as attributes, strings and integers as labels.
        options: any other options of the command line, such as ``{"trainer.standardize": False, "ewl": "colors"}``.
        seed: of weights, shuffling and the validation set. Default: ``0``.
        device: auto, cpu, cuda, … Default: ``"auto"``.

    Attributes:
        classes_: sorted class labels.
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

    def __init__(
        self,
        model: str = "egin_e",
        hidden_dim: int | None = None,
        num_layers: int | None = None,
        edge_dim: int | None = None,
        learn_eps: bool | None = None,
        dropout: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        validation: float = 0.1,
        node_labels: Sequence[str] | None = None,
        node_attributes: Sequence[str] | None = None,
        edge_labels: Sequence[str] | None = None,
        edge_attributes: Sequence[str] | None = None,
        options: Mapping[str, object] | None = None,
        seed: int = 0,
        device: str = "auto",
    ):
        self.model = model
        self.hidden_dim = hidden_dim
        self.num_layers = num_layers
        self.edge_dim = edge_dim
        self.learn_eps = learn_eps
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.validation = validation
        self.node_labels = node_labels
        self.node_attributes = node_attributes
        self.edge_labels = edge_labels
        self.edge_attributes = edge_attributes
        self.options = options
        self.seed = seed
        self.device = device

    def fit(self, graphs: Sequence, y: Sequence) -> "EGINClassifier":
        """Train on graphs and their classes: strings, integers or booleans."""
        graphs, targets = as_graph_list(graphs), as_targets(y)
        check_consistent_length(graphs, targets)
        classes, numbers = np.unique(targets, return_inverse=True)
        if len(classes) < 2:
            raise DataError(f"y must have two or more classes, got {classes.tolist()}")
        names = [str(value) for value in classes.tolist()]
        labels = [names[number] for number in numbers]
        info = DatasetInfo(0, 0, len(names), class_names=tuple(names), target_names=("label",))
        dataset = GraphDataset.from_graphs(graphs, labels, info=info, **self._columns())
        experiment = make_experiment(self._settings(), dataset=dataset)
        with tempfile.TemporaryDirectory() as folder, one_thread():
            job = experiment.job(FoldDir(Path(folder), 0), self._split(dataset))
            self.result_ = experiment.train(experiment.dataset, job, lambda fold, record: None)
            self.fold_: TrainedFold = load_fold(job.folder, experiment.device, trust=True)
        self.classes_ = classes
        return self

    def predict_proba(self, graphs: Sequence) -> np.ndarray:
        """Class probabilities (G, classes), columns as in `classes_`."""
        check_is_fitted(self, "fold_")
        fold = self.fold_
        dataset = GraphDataset.from_graphs(
            as_graph_list(graphs),
            vocabulary=fold.vocabulary,
            info=fold.info,
            **self._columns(),
        )
        with one_thread():
            return fold.predict(dataset).numpy()

    def predict(self, graphs: Sequence) -> np.ndarray:
        """The most probable class of each graph."""
        numbers = self.predict_proba(graphs).argmax(axis=1)
        return self.classes_[numbers]

    def _columns(self) -> dict:
        names = ("node_labels", "node_attributes", "edge_labels", "edge_attributes")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def _settings(self) -> Settings:
        """Compose the configuration with the arguments of the estimator."""
        values = {
            f"{group}.{name}": getattr(self, name)
            for group, names in ARGUMENTS.items()
            for name in names
            if getattr(self, name) is not None
        }
        groups = [f"model={self.model}", f"seed={self.seed}", f"device={self.device}", "dataset=bonds"]
        groups.append("cv=ten_fold" if self.validation else "cv=paper")
        try:
            if "hidden_dim" not in compose_config(groups[:1]).model:
                values.pop("model.hidden_dim", None)
            values |= dict(self.options or {})
            overrides = [f"{key}={to_override(value)}" for key, value in values.items()]
            return resolve_settings(compose_config([*groups, *overrides]))
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(explain(error)) from error

    def _split(self, dataset: GraphDataset) -> Split:
        everything = np.arange(len(dataset))
        if not self.validation:
            return Split(everything, NO_GRAPHS, NO_GRAPHS)
        if not 0 < self.validation <= 0.5:
            raise ConfigError(f"validation must be a fraction from 0 to 0.5, got {self.validation!r}")
        k = min(round(1 / self.validation), len(dataset))
        chosen = make_folds(dataset.labels.numpy(), k, self.seed).indices[0]
        return Split(np.setdiff1d(everything, chosen), chosen, NO_GRAPHS)


def as_graph_list(graphs: Sequence) -> list:
    """The graphs as a list; a single graph, a string or a table is a ValueError in scikit-learn's words."""
    if kind := kind_of(graphs):
        raise ValueError(f"Expected a list of graphs, got a single {kind} instead: pass a list of one graph.")
    if (dimensions := getattr(graphs, "ndim", 1)) != 1:
        kind = type(graphs).__name__
        raise ValueError(f"Expected a list of graphs or one column, got a {dimensions}D {kind} instead.")
    return list(graphs)


def as_targets(y: Sequence) -> np.ndarray:
    """One class for each graph, (G,); missing and continuous values are a ValueError, as in scikit-learn."""
    if y is None:
        raise ValueError("EGINClassifier requires y to be passed, but the target y is None.")
    if pd.Series(list(y), dtype=object).isna().any():
        raise ValueError("Input y contains NaN.")
    labels = column_or_1d(np.asarray(y), warn=True)
    labels = np.array(labels.tolist()) if labels.dtype == object else labels  # as pandas stores strings
    check_classification_targets(labels)
    return labels


def to_override(value: object) -> str:
    """A value in Hydra's grammar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(to_override, value))}]"
    return str(value)
