"""Finished runs, loaded: the models of their folds as an ensemble, and their predictions."""

import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch

from egin_dgl.data.arrays import GraphArrays, ReadChunk
from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.prepare import from_arrays
from egin_dgl.data.readers.detect import graph_options
from egin_dgl.data.targets import encoded_like
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import ConfigError, DataError, TrainingError
from egin_dgl.evaluation.conformal import LEVEL, conformal_quantiles
from egin_dgl.files import check_links
from egin_dgl.inference.inputs import open_inputs
from egin_dgl.inference.predictions import Predictions, add_columns, concat_frames
from egin_dgl.inference.same_kind import check_same_kind
from egin_dgl.inference.subgraphs import one_graph
from egin_dgl.inference.trained_fold import TrainedFold, load_fold
from egin_dgl.runs.reader import Run, choose_folds, read_run
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.schemas import ConformalRecord, read_conformal
from egin_dgl.tasks import TASKS, Task

if TYPE_CHECKING:
    from egin_dgl.inference.explanation import Explanation


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """The models of a run, one per fold, or those of several runs. Graphs are given as

    - a path: a CSV of molecules, a directory of CSVs, a .bin of DGL, a TU dataset;
    - a SMILES string, or a list or column of SMILES, RDKit molecules, or DGL, networkx or PyG graphs;
    - a data frame of molecules, with the column of SMILES that the run was trained on;
    - a `GraphDataset` with the features of the run.
    """

    run: Run  # the first of several
    folds: tuple[TrainedFold, ...]
    conformal: tuple[ConformalRecord, ...] = ()  # scores of the test graphs of each run; empty: unknown
    level: float | None = LEVEL  # of conformal intervals and label sets; None: without

    def __repr__(self) -> str:
        count = f"{len(self.folds)} model{'s' * (len(self.folds) > 1)}"
        return f"TrainedRun({self.run.model} on {self.run.dataset}, {count}, in {self.run.folder})"

    @property
    def info(self) -> DatasetInfo:
        """Of the training data."""
        return self.folds[0].info

    @property
    def task(self) -> type[Task]:
        return TASKS[self.info.task]

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

    @property
    def quantiles(self) -> torch.Tensor | None:
        """(T,) of conformal intervals or label sets: the mean over runs; None: without."""
        if self.level is None or not self.conformal:
            return None
        return torch.stack([conformal_quantiles(one, self.level) for one in self.conformal]).mean(dim=0)

    def select_fold(self, fold: int) -> "TrainedRun":
        """The run with the model of one fold only."""
        chosen = tuple(one for one in self.folds if one.number == fold)
        if not chosen:
            numbers = ", ".join(str(one.number) for one in self.folds)
            raise ConfigError(f"{self.run.folder} has no finished fold {fold!r}; valid: {numbers}")
        return replace(self, folds=chosen)

    def encode(self, arrays: GraphArrays, name: str = "new graphs") -> GraphDataset:
        """Encode raw graphs with the vocabulary and the targets of the run."""
        options = graph_options(self.run.settings["dataset"])
        return from_arrays(arrays, name, options, vocabulary=self.vocabulary, targets=encoded_like(self.info))

    def read_chunks(self, graphs: object, chunk_size: int = 1024) -> Generator[GraphArrays, None, None]:
        """Read raw graphs, at most `chunk_size` at a time; molecules that cannot be read are listed in `GraphArrays.rows`."""
        yield from (read() for read in self.open_chunks(graphs, chunk_size))

    def open_chunks(self, graphs: object, chunk_size: int = 1024) -> Generator[ReadChunk, None, None]:
        """The chunks of `read_chunks` before they are read, which another process may do."""
        yield from open_inputs(graphs, self.run.settings["dataset"], chunk_size)

    def read_datasets(self, graphs: object, chunk_size: int = 1024) -> Iterator[GraphDataset]:
        """Read and encode graphs in chunks, without those that cannot be read."""
        if isinstance(graphs, GraphDataset):
            yield graphs
            return
        for arrays in self.read_chunks(graphs, chunk_size):
            if arrays.graphs:
                yield self.encode(arrays)

    def predict_dataset(self, dataset: GraphDataset) -> Predictions:
        """Mean and standard deviation of the predictions of all models."""
        each = torch.stack([fold.predict(dataset) for fold in self.folds])
        std = each.std(dim=0, correction=0) if len(each) > 1 else None
        return Predictions(dataset.names, self.info, each.mean(dim=0), std, self.calibrated, self.quantiles)

    def predict_arrays(self, arrays: GraphArrays) -> tuple[GraphDataset | None, Predictions]:
        """Raw graphs encoded, None if there are none, and their predictions."""
        if arrays.graphs:
            dataset = self.encode(arrays)
            return dataset, self.predict_dataset(dataset)
        nothing = torch.zeros(0, self.info.outputs, dtype=torch.float64)
        std = nothing if len(self.folds) > 1 else None
        return None, Predictions((), self.info, nothing, std, self.calibrated, self.quantiles)

    def predict(self, graphs: object) -> pd.DataFrame:
        """A row per graph with the columns of `egin predict`: those of the input, or its id, and the predictions.

        A molecule that cannot be read has blanks, and the reason in the last column. See `predict_file` for files that do
        not fit into memory.
        """
        if isinstance(graphs, GraphDataset):
            return self.predict_dataset(graphs).to_frame()
        frames = []
        for arrays in self.read_chunks(graphs):
            frames.append(self.predict_arrays(arrays)[1].to_frame(arrays.rows))
        return concat_frames(frames, graphs)

    def embed(self, graphs: object) -> pd.DataFrame:
        """A row per graph with its embedding by the first model, the input of its classifier: columns e0, e1, …

        Rows are those of `predict`; a molecule that cannot be read has blanks.
        """
        if isinstance(graphs, GraphDataset):
            return self._embed_dataset(graphs)
        frames = []
        for arrays in self.read_chunks(graphs):
            frame = self._embed_dataset(self.encode(arrays)) if arrays.graphs else pd.DataFrame()
            if arrays.rows is not None:
                frame = add_columns(
                    replace(arrays.rows, columns={}, reasons=()),
                    {str(name): frame[name].tolist() for name in frame},
                )
            frames.append(frame)
        return concat_frames(frames, graphs)

    def _embed_dataset(self, dataset: GraphDataset) -> pd.DataFrame:
        return pd.DataFrame(self.folds[0].embeddings(dataset).numpy()).add_prefix("e")

    def explain(self, graphs: object, target: str | None = None) -> pd.DataFrame:
        """A row per node and edge of every graph, with its contributions to the prediction; see `explain_graph`.

        Columns: graph, target (what is explained), value (its prediction), part ("node" or "edge"), the numbers of its ends
        (source and destination, the same for a node), occlusion and, for networks, gradients.
        """
        from egin_dgl.inference.explanation import explain_graph  # it needs this class

        found: list[Explanation] = []
        for dataset in self.read_datasets(graphs):
            found += [explain_graph(self, one_graph(dataset, i), target) for i in range(len(dataset))]
        return concat_frames([explanation.to_frame() for explanation in found], None)


def load_run(
    directory: str | os.PathLike | Sequence[str | os.PathLike],
    device: str = "cpu",
    trust: bool = False,
    folds: int | Sequence[int] | None = None,
    level: float | None = LEVEL,
) -> TrainedRun:
    """Load the models of runs from the weights of their folds, of which nothing else is read, and their temperatures.

    Args:
        directory: of the run, or a list of several runs, such as with other seeds, whose predictions are averaged.
        device: cpu, cuda, cuda:1, …
        trust: whether the directory may name model classes of other packages, whose import runs their code. Default: False.
        folds: numbers of the folds to load, of which alone the weights must be readable. Default: all.
        level: of conformal intervals and label sets; None: without. Default: 0.9.

    Example::

        run = load_run("outputs/molecules")
        run.predict(["CCO", "c1ccccc1"])
    """
    if level is not None and not 0 < level < 1:
        raise ConfigError(f"level must be between 0 and 1, or null, got {level!r}")
    several = [directory] if isinstance(directory, (str, os.PathLike)) else list(directory)
    if not several:
        raise ConfigError("there is no run to load: the list of directories is empty")
    runs = [load_one_run(Path(one), device, trust, folds) for one in several]
    for other in runs[1:]:
        check_same_kind(runs[0], other)
    models = tuple(fold for run in runs for fold in run.folds)
    conformal = tuple(record for run in runs for record in run.conformal)
    # A run without scores would make the quantiles those of other models.
    return replace(
        runs[0], folds=models, conformal=conformal if len(conformal) == len(runs) else (), level=level
    )


def load_one_run(path: Path, device: str, trust: bool, folds: int | Sequence[int] | None) -> TrainedRun:
    """See `load_run`."""
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
    if not loaded:
        raise ConfigError(f"{path}: it has no fold to load")
    conformal = read_conformal(RunDir(path).summary)
    targets = 1 if loaded[0].info.classes else len(loaded[0].info.target_names)
    if conformal is not None and len(conformal["graphs"]) != targets:
        raise ConfigError(
            f"{RunDir(path).summary}: damaged (its conformal scores are not those of {targets} target(s))"
        )
    return TrainedRun(run, tuple(loaded), () if conformal is None else (conformal,))
