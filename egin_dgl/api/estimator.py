"""Any model of the zoo as a classifier of scikit-learn: lists of graphs in, classes and probabilities out."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from egin_dgl.cli.experiment import make_experiment_on
from egin_dgl.cli.paths import conf_dir
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.splits import Split, make_folds
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.inference.trained_fold import TrainedFold, load_fold
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.training.job import FoldJob
from egin_dgl.training.parallel.workers import one_thread

NONE = np.empty(0, dtype=np.int64)


class EGINClassifier(ClassifierMixin, BaseEstimator):
    """Trained as `egin train` trains a fold, with the same defaults; what is None is as the configuration has it.

    Args:
        model: an option of conf/model: egin, egin_c, egin_e, gin, …, also the kernels.
        hidden_dim: the width of the model; kernels and the majority class have none, and take no notice of it, so that a
            grid over models and widths may hold them.
        num_layers, edge_dim, learn_eps, dropout: of the model, refused where it has no such option.
        epochs, batch_size, lr: of training.
        validation: the share of the graphs that chooses the epoch and calibrates probabilities; 0: the last epoch, not
            calibrated. Classes are spread over both parts evenly.
        node_labels, node_attributes, edge_labels, edge_attributes: the columns of the graphs to use, by name; None: all,
            numbers as attributes, words and whole numbers as labels.
        options: any other options, as a command has them: {"trainer.standardize": True, "ewl": "colors"}.
        seed: of weights, shuffling and the validation part.
        device: auto, cpu, cuda, …

    `fit(graphs, y)` takes lists of DGL, networkx or PyG graphs, or of SMILES; `fold_` is then what was trained.
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
        """Train on graphs and their classes, of any type that can be sorted."""
        classes, numbers = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                f"there is one class only ({classes[0] if len(classes) else 'none'}): nothing to learn"
            )
        names = [str(value) for value in classes.tolist()]
        dataset = GraphDataset.from_graphs(
            graphs, [names[number] for number in numbers], class_names=names, **self._columns()
        )
        cfg = self._config()
        experiment = make_experiment_on(cfg, dataset)
        with tempfile.TemporaryDirectory() as folder, one_thread():
            job = FoldJob(
                fold=0,
                seed=self.seed,
                split=self._split(dataset),
                folder=FoldDir(Path(folder), 0),
                train=experiment.train,
                device=experiment.device,
                recipe=experiment.recipe,
            )
            self.result_ = experiment.train(experiment.dataset, job, lambda fold, record: None)
            self.fold_: TrainedFold = load_fold(job.folder, experiment.device, trust=True)
        self.classes_ = classes
        return self

    def predict_proba(self, graphs: Sequence) -> np.ndarray:
        """(G, classes), columns as in `classes_`."""
        check_is_fitted(self, "fold_")
        vocabulary, names = self.fold_.vocabulary, self.fold_.info.class_names
        dataset = GraphDataset.from_graphs(
            graphs, vocabulary=vocabulary, class_names=names, **self._columns()
        )
        with one_thread():
            return self.fold_.probabilities(dataset).numpy()

    def predict(self, graphs: Sequence) -> np.ndarray:
        answers = self.predict_proba(graphs).argmax(axis=1)
        return self.classes_[answers]

    def _columns(self) -> dict:
        names = ("node_labels", "node_attributes", "edge_labels", "edge_attributes")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def _config(self) -> DictConfig:
        """The shipped configuration with this estimator's choices; one that the model has not is refused, by name."""
        own: dict[str, object] = {
            "model.hidden_dim": self.hidden_dim,
            "model.num_layers": self.num_layers,
            "model.edge_dim": self.edge_dim,
        }
        own |= {"model.learn_eps": self.learn_eps, "model.dropout": self.dropout}
        own |= {"trainer.epochs": self.epochs, "trainer.batch_size": self.batch_size, "optimizer.lr": self.lr}
        chosen = {key: value for key, value in own.items() if value is not None} | dict(self.options or {})
        words = [f"model={self.model}", f"seed={self.seed}", f"device={self.device}", "dataset=bonds"]
        words += [f"{key}={as_override(value)}" for key, value in chosen.items()]
        words += ["cv=ten_fold" if self.validation else "cv=paper"]
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            if self.hidden_dim is not None and "hidden_dim" not in compose("train", words[:1]).model:
                words = [word for word in words if not word.startswith("model.hidden_dim=")]
            return compose("train", words)

    def _split(self, dataset: GraphDataset) -> Split:
        everything = np.arange(len(dataset))
        if not self.validation:
            return Split(everything, NONE, NONE)
        if not 0 < self.validation <= 0.5:
            raise ConfigError(f"validation must be a share from 0 to 0.5, got {self.validation!r}")
        parts = min(round(1 / self.validation), len(dataset))
        chosen = make_folds(dataset.labels.numpy(), parts, self.seed).indices[0]
        return Split(np.setdiff1d(everything, chosen), chosen, NONE)


def as_override(value: object) -> str:
    """A value as Hydra's grammar has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(as_override, value))}]"
    return str(value)
