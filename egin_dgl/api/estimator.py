"""Any model of the zoo as a scikit-learn estimator: what classifier and regressor share."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from typing_extensions import Self

from egin_dgl.api.settings import compose_settings
from egin_dgl.cli.error_messages import explain
from egin_dgl.cli.experiment import make_experiment
from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.prepare import GraphOptions, from_arrays
from egin_dgl.data.readers.columns import select_columns
from egin_dgl.data.readers.graph_objects import graphs_to_arrays
from egin_dgl.data.readers.libraries import MOLECULES, kind_of
from egin_dgl.data.readers.molecules import is_no_molecule, molecules_to_arrays
from egin_dgl.data.splits import Split, make_folds
from egin_dgl.data.targets import encoded_like
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.inference.subgraphs import one_graph
from egin_dgl.inference.trained_fold import TrainedFold, load_fold
from egin_dgl.inference.trained_run import TrainedRun
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.reader import Run
from egin_dgl.training.parallel.workers import one_thread
from egin_dgl.training.trainer import fit_fold

NO_GRAPHS = np.empty(0, dtype=np.int64)
COLUMNS = ("node_labels", "node_attributes", "edge_labels", "edge_attributes")


class GraphEstimator(TransformerMixin, BaseEstimator):
    """Arguments, training and embeddings of `EGINClassifier` and `EGINRegressor`."""

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
        features: str = "tu",
        on_invalid: str = "raise",
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
        self.features = features
        self.on_invalid = on_invalid
        self.node_labels = node_labels
        self.node_attributes = node_attributes
        self.edge_labels = edge_labels
        self.edge_attributes = edge_attributes
        self.options = options
        self.seed = seed
        self.device = device

    def transform(self, graphs: Sequence) -> np.ndarray:
        """Embeddings of graphs (G, D), the input of the model's last layers."""
        return self._apply(graphs, lambda dataset: self.fold_.embeddings(dataset))

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Names of the columns of `transform`."""
        check_is_fitted(self, "embedding_dim_")
        return np.array([f"e{i}" for i in range(self.embedding_dim_)], dtype=object)

    def explain(self, graphs: Sequence, target: object = None) -> pd.DataFrame:
        """Contributions of the nodes and edges of each graph to a class or target; see `TrainedRun.explain`."""
        check_is_fitted(self, "fold_")
        run = TrainedRun(Run(Path(), str(self.model), "graphs"), (self.fold_,))
        with one_thread():
            return run.explain(self._encode(graphs)[0], None if target is None else str(target))

    def _fit(self, graphs: Sequence, labels: np.ndarray, info: DatasetInfo, sample_weight: object) -> Self:
        """Train on labels as in `GraphDataset`, described by `info`."""
        check_consistent_length(as_graph_list(graphs), labels, sample_weight)
        weights = as_weights(sample_weight, len(labels))
        self._check_choice("features", ("tu", "rich"))
        self._check_choice("on_invalid", ("raise", "skip"))
        arrays, valid = self._read(graphs)
        if not arrays.graphs:
            raise DataError("there is no graph that can be read")
        dataset = from_arrays(arrays, "graphs", GraphOptions("as_given"), targets=encoded_like(info))
        labels = labels[valid]
        known = labels >= 0 if labels.ndim == 1 else ~np.isnan(labels).all(axis=1)
        if weights is not None:
            weights = weights[valid]
            known &= weights > 0
        usable = np.flatnonzero(known)
        if not len(usable):
            raise ValueError("y has no value to learn from: all are missing or have a weight of 0.")
        tensor = None if weights is None else torch.from_numpy(weights)
        dataset = replace(dataset, labels=torch.from_numpy(labels), weights=tensor)
        try:
            experiment = make_experiment(compose_settings(self.get_params(deep=False)), dataset=dataset)
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(explain(error)) from error
        if weights is not None and experiment.train is not fit_fold:
            raise ValueError(f"model={self.model!r} does not support sample_weight; networks do.")
        with tempfile.TemporaryDirectory() as directory, one_thread():
            job = experiment.job(FoldDir(Path(directory), 0), self._split(labels, usable))
            self.result_ = experiment.train(experiment.dataset, job, lambda fold, record: None)
            self.fold_: TrainedFold = load_fold(job.folder, experiment.device, trust=True)
            if experiment.train is fit_fold:
                self.embedding_dim_ = self.fold_.embeddings(one_graph(dataset, int(usable[0]))).shape[1]
        return self

    def _predict(self, graphs: Sequence) -> np.ndarray:
        """What the task predicts, (G, outputs); NaN for molecules that cannot be read."""
        return self._apply(graphs, lambda dataset: self.fold_.predict(dataset))

    def _apply(self, graphs: Sequence, function: Any) -> np.ndarray:
        check_is_fitted(self, "fold_")
        dataset, valid = self._encode(graphs)
        with one_thread():
            found = function(dataset).numpy()
        if valid.all():
            return found
        values = np.full((len(valid), found.shape[1]), np.nan)
        values[valid] = found
        return values

    def _encode(self, graphs: Sequence) -> tuple[GraphDataset, np.ndarray]:
        """New graphs as those of training, without molecules that cannot be read, and which of them can."""
        fold = self.fold_
        arrays, valid = self._read(graphs)
        if not arrays.graphs:
            raise DataError("there is no graph that can be read")
        options, targets = GraphOptions("as_given"), encoded_like(fold.info)
        return from_arrays(arrays, "graphs", options, vocabulary=fold.vocabulary, targets=targets), valid

    def _read(self, graphs: Sequence) -> tuple[GraphArrays, np.ndarray]:
        several = as_graph_list(graphs)
        if several and all(is_no_molecule(graph) or kind_of(graph) in MOLECULES for graph in several):
            arrays = molecules_to_arrays(several, self.features)
            if arrays.skipped and self.on_invalid == "raise":
                raise DataError(f"{arrays.skipped[0]}; on_invalid='skip' leaves such molecules out")
            assert arrays.rows is not None
            return arrays, arrays.rows.graph >= 0
        columns = select_columns(*(getattr(self, name) for name in COLUMNS))
        arrays = graphs_to_arrays(several, columns=columns)
        return replace(arrays, targets=None, task="auto"), np.ones(arrays.graphs, dtype=bool)

    def _split(self, labels: np.ndarray, usable: np.ndarray) -> Split:
        """The graphs with a label and a weight: some for validation, the others for training."""
        if not self.validation:
            return Split(usable, NO_GRAPHS, NO_GRAPHS)
        if not 0 < self.validation <= 0.5:
            raise ConfigError(f"validation must be a fraction from 0 to 0.5, got {self.validation!r}")
        k = min(round(1 / self.validation), len(usable))
        chosen = usable[make_folds(labels[usable], k, self.seed).indices[0]]
        return Split(np.setdiff1d(usable, chosen), chosen, NO_GRAPHS)

    def _check_choice(self, name: str, valid: tuple[str, ...]) -> None:
        if (value := getattr(self, name)) not in valid:
            raise ValueError(
                f"The {name!r} parameter must be a str among {set(valid)}. Got {value!r} instead."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.no_validation = True
        return tags


def as_graph_list(graphs: Sequence) -> list:
    """The graphs as a list; a single graph, a string or a table is a ValueError in scikit-learn's words."""
    if kind := kind_of(graphs):
        raise ValueError(f"Expected a list of graphs, got a single {kind} instead: pass a list of one graph.")
    if (dimensions := getattr(graphs, "ndim", 1)) != 1:
        kind = type(graphs).__name__
        raise ValueError(f"Expected a list of graphs or one column, got a {dimensions}D {kind} instead.")
    if not isinstance(graphs, Iterable) or isinstance(graphs, Mapping):
        raise ValueError(f"Expected a list of graphs, got {type(graphs).__name__} instead.")
    return list(graphs)


def as_weights(sample_weight: object, graphs: int) -> np.ndarray | None:
    """Weights (G,), not negative and not all 0; None: all graphs count alike."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (graphs,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(graphs,)}!")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must have values that are finite and not negative.")
    if not weights.any():
        raise ValueError("sample_weight cannot contain zeros only.")
    return weights
