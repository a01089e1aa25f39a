"""A run loaded again: its folds as an ensemble that answers for new graphs."""

import os
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.encode import from_arrays
from egin_dgl.data.readers.detect import graph_options, open_graphs
from egin_dgl.data.readers.graph_lists import graphs_to_arrays
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.inference.predictions import Predictions
from egin_dgl.inference.trained_fold import TrainedFold, load_fold
from egin_dgl.runs.reader import Run, read_run
from egin_dgl.runs.run_dir import RunDir


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """The models that a run kept, one a fold."""

    run: Run
    folds: tuple[TrainedFold, ...]

    def __repr__(self) -> str:
        count = f"{len(self.folds)} fold{'s' * (len(self.folds) > 1)}"
        return f"TrainedRun({self.run.model} on {self.run.dataset}, {count}, in {self.run.folder})"

    @property
    def info(self) -> DatasetInfo:
        """Of the data it was trained on; folds differ only in what they measured."""
        return self.folds[0].info

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.info.class_names

    @property
    def vocabulary(self) -> Vocabulary:
        known = self.folds[0].vocabulary
        if known is None:
            raise DataError(
                "the dataset of this run had no vocabulary, so that only its own graphs can be used"
            )
        return known

    @property
    def calibrated(self) -> bool:
        """Whether all folds had a validation part to learn a temperature from."""
        return all(fold.temperature is not None for fold in self.folds)

    def only(self, fold: int) -> "TrainedRun":
        """One fold of it instead of all."""
        chosen = tuple(one for one in self.folds if one.number == fold)
        if not chosen:
            there = ", ".join(str(one.number) for one in self.folds)
            raise ConfigError(f"{self.run.folder} has no finished fold {fold!r}; there are {there}")
        return TrainedRun(self.run, chosen)

    def encode(self, arrays: GraphArrays, name: str = "new graphs") -> GraphDataset:
        """Raw graphs with the features and class numbers that the models expect."""
        options = graph_options(self.run.settings["dataset"])
        return from_arrays(arrays, name, options, vocabulary=self.vocabulary, class_names=self.class_names)

    def pieces(self, graphs: object, at_once: int = 1024) -> Generator[GraphArrays, None, None]:
        """Raw graphs of a path or of a list or column of DGL, networkx or PyG graphs or SMILES, in pieces."""
        settings = self.run.settings["dataset"]
        if isinstance(graphs, (str, os.PathLike)):
            yield from open_graphs(Path(graphs), settings, at_once)
        elif isinstance(graphs, Iterable):
            yield graphs_to_arrays(list(graphs), molecules=settings.get("features", "tu"))
        else:
            raise DataError(
                f"cannot read graphs from {type(graphs).__name__}: give a path or a list of graphs"
            )

    def datasets(self, graphs: object, at_once: int = 1024) -> Iterator[GraphDataset]:
        """What graphs of any kind are to the models; a GraphDataset has their features already."""
        if isinstance(graphs, GraphDataset):
            yield graphs
            return
        for arrays in self.pieces(graphs, at_once):
            if arrays.graphs:
                yield self.encode(arrays)

    def predict(self, graphs: object) -> Predictions:
        """Predictions for graphs of any kind that `datasets` takes; long files are better read in pieces."""
        found = [self.answer(dataset) for dataset in self.datasets(graphs)]
        if not found:
            raise DataError("there is no graph to predict")
        return Predictions(
            ids=[name for part in found for name in part.ids],
            class_names=self.class_names,
            probabilities=torch.cat([part.probabilities for part in found]),
            spread=torch.cat([part.spread for part in found]),
            calibrated=self.calibrated,
        )

    def answer(self, dataset: GraphDataset) -> Predictions:
        """The mean over folds of their probabilities."""
        each = torch.stack([fold.probabilities(dataset) for fold in self.folds])
        spread = each.std(dim=0, correction=0)
        return Predictions(dataset.names, self.class_names, each.mean(dim=0), spread, self.calibrated)


def load_run(folder: str | os.PathLike, device: str = "cpu", trust: bool = False) -> TrainedRun:
    """The finished folds of a run; `trust` lets its folder name model classes that are not of this package."""
    path = Path(folder)
    if not RunDir(path).holds_a_run:
        raise ConfigError(f"{path} is not the folder of a run: it has no run.json")
    run = read_run(path)
    if not run.results:
        raise ConfigError(f"{path}: {run.reason}; there is no model to use")
    folds = tuple(load_fold(RunDir(path).fold(number), device, trust) for number in sorted(run.results))
    return TrainedRun(run, folds)
