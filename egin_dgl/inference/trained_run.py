"""A finished run, loaded: the models of its folds as an ensemble, and their predictions."""

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.prepare import from_arrays
from egin_dgl.data.readers.detect import graph_options, open_graphs
from egin_dgl.data.readers.graph_objects import graphs_to_arrays
from egin_dgl.data.targets import encoded_like
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import ConfigError, DataError, TrainingError
from egin_dgl.inference.trained_fold import TrainedFold, load_fold
from egin_dgl.runs.reader import Run, read_run
from egin_dgl.runs.run_dir import RunDir, check_links


@dataclass(frozen=True, eq=False)
class Predictions:
    """Class probabilities of G graphs: mean and standard deviation over the models of the folds."""

    ids: Sequence[str]
    class_names: tuple[str, ...]
    probabilities: Tensor  # (G, classes) double
    std: Tensor  # (G, classes); 0 for a single model
    calibrated: bool

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        state = "calibrated" if self.calibrated else "not calibrated"
        return f"Predictions({len(self)} graphs, classes {', '.join(self.class_names[:10])}, {state})"

    @property
    def predicted(self) -> list[str]:
        """The most probable class of each graph, by its name in the training data."""
        return [self.class_names[number] for number in self.probabilities.argmax(dim=1).tolist()]

    def to_frame(self) -> pd.DataFrame:
        """A row per graph: id, predicted, and for each class its probability p_NAME and standard deviation std_NAME."""
        columns: dict[str, object] = {"id": list(self.ids), "predicted": self.predicted}
        for prefix, values in (("p_", self.probabilities), ("std_", self.std)):
            columns |= {f"{prefix}{name}": values[:, i].numpy() for i, name in enumerate(self.class_names)}
        return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """The models of a run, one per fold. Graphs are given as a path (CSV, directory of CSVs, .bin of DGL, TU dataset), a list
    or column of DGL, networkx or PyG graphs or SMILES, or a `GraphDataset` with the features of the run."""

    run: Run
    folds: tuple[TrainedFold, ...]

    def __repr__(self) -> str:
        count = f"{len(self.folds)} fold{'s' * (len(self.folds) > 1)}"
        return f"TrainedRun({self.run.model} on {self.run.dataset}, {count}, in {self.run.folder})"

    @property
    def info(self) -> DatasetInfo:
        """Of the training data."""
        return self.folds[0].info

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.info.class_names

    @property
    def vocabulary(self) -> Vocabulary:
        vocabulary = self.folds[0].vocabulary
        if vocabulary is None:
            raise DataError("the dataset of this run has no vocabulary: only its own graphs can be predicted")
        return vocabulary

    @property
    def calibrated(self) -> bool:
        """Whether every model has a temperature: that of a finished run, otherwise its own."""
        return all(fold.temperature is not None for fold in self.folds)

    def select_fold(self, fold: int) -> "TrainedRun":
        """The run with the model of one fold only."""
        chosen = tuple(one for one in self.folds if one.number == fold)
        if not chosen:
            numbers = ", ".join(str(one.number) for one in self.folds)
            raise ConfigError(f"{self.run.folder} has no finished fold {fold!r}; valid: {numbers}")
        return TrainedRun(self.run, chosen)

    def encode(self, arrays: GraphArrays, name: str = "new graphs") -> GraphDataset:
        """Encode raw graphs with the vocabulary and the classes of the run."""
        options = graph_options(self.run.settings["dataset"])
        return from_arrays(arrays, name, options, vocabulary=self.vocabulary, targets=encoded_like(self.info))

    def read_chunks(self, graphs: object, chunk_size: int = 1024) -> Generator[GraphArrays, None, None]:
        """Read raw graphs, files in chunks of at most `chunk_size` graphs."""
        settings = self.run.settings["dataset"]
        if isinstance(graphs, (str, os.PathLike)):
            yield from open_graphs(Path(graphs), settings, chunk_size)
        elif isinstance(graphs, Iterable):
            yield graphs_to_arrays(list(graphs), molecules=settings.get("features", "tu"))
        else:
            raise DataError(f"graphs must be a path or a list of graphs, got {type(graphs).__name__}")

    def read_datasets(self, graphs: object, chunk_size: int = 1024) -> Iterator[GraphDataset]:
        """Read and encode graphs in chunks."""
        if isinstance(graphs, GraphDataset):
            yield graphs
            return
        for arrays in self.read_chunks(graphs, chunk_size):
            if arrays.graphs:
                yield self.encode(arrays)

    def predict(self, graphs: object) -> Predictions:
        """Predict the classes of graphs; see `predict_file` for files that do not fit into memory."""
        found = [self.predict_dataset(dataset) for dataset in self.read_datasets(graphs)]
        if not found:
            raise DataError("there is no graph to predict")
        return Predictions(
            ids=[name for one in found for name in one.ids],
            class_names=self.class_names,
            probabilities=torch.cat([one.probabilities for one in found]),
            std=torch.cat([one.std for one in found]),
            calibrated=self.calibrated,
        )

    def predict_dataset(self, dataset: GraphDataset) -> Predictions:
        """Mean and standard deviation over folds of their probabilities."""
        each = torch.stack([fold.predict(dataset) for fold in self.folds])
        std = each.std(dim=0, correction=0)
        return Predictions(dataset.names, self.class_names, each.mean(dim=0), std, self.calibrated)


def load_run(
    directory: str | os.PathLike,
    device: str = "cpu",
    trust: bool = False,
    folds: int | Sequence[int] | None = None,
) -> TrainedRun:
    """Load the models of a run from the weights of its folds, of which nothing else is read, and their temperature.

    Args:
        directory: of the run.
        device: cpu, cuda, cuda:1, …
        trust: whether the directory may name model classes of other packages, whose import runs their code. Default: False.
        folds: numbers of the folds to load, of which alone the weights must be readable. Default: all.

    Example::

        run = load_run("outputs/molecules")
        run.predict(["CCO", "c1ccccc1"]).to_frame()
    """
    path = Path(directory)
    if not RunDir(path).exists:
        raise ConfigError(f"{path} is not a run directory: it has no run.json")
    if not trust:
        check_links(path)
    run = read_run(path, with_results=False)
    if not run.settings:
        raise ConfigError(f"{path}: {run.reason}; there is no model to load")
    chosen = choose_folds(run, [folds] if isinstance(folds, int) else folds)
    loaded, temperature = [], RunDir(path).load_temperature()
    for fold in chosen:
        try:
            model = load_fold(RunDir(path).fold(fold), device, trust)
            loaded.append(model if temperature is None else replace(model, temperature=temperature))
        except TrainingError as error:
            others = [number for number in chosen if number != fold]
            raise TrainingError(f"{error}" + (f", or use fold={others}" if others else "")) from error
    return TrainedRun(run, tuple(loaded))


def choose_folds(run: Run, folds: Sequence[int] | None) -> list[int]:
    """The folds to load: all, or those given; each must be finished."""
    directory = RunDir(run.folder)
    # A finished run has weights of every fold: a file that is missing there is an error about this file.
    all_finished = directory.summary.exists()
    expected = [fold for fold in run.expected if fold in range(run.whole)]
    finished = [fold for fold in expected if all_finished or directory.fold(fold).has_final_weights]
    if folds is None and len(finished) < len(expected):
        use = f"; fold={finished} uses these, and" if finished else ";"
        state = f"{len(finished)} of {len(expected)} folds are finished"
        raise ConfigError(f"{run.folder}: {state}{use} resume={run.folder} trains the others")
    if folds is not None and not folds:
        raise ConfigError("folds must name at least one fold")
    for fold in folds or ():
        if fold not in finished:
            valid = ", ".join(map(str, finished)) or "none"
            raise ConfigError(f"{run.folder} has no finished fold {fold!r}; valid: {valid}")
    return finished if folds is None else sorted(set(folds))
