"""Predictions for a file of any length: read, answered and written piece by piece."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.errors import DataError
from egin_dgl.files import atomic_path, temporary_sibling, write_bytes
from egin_dgl.inference.trained_run import TrainedRun

if TYPE_CHECKING:
    from torchmetrics.classification import MulticlassConfusionMatrix as ConfusionMatrix

MOST_SKIPPED = 5  # that are told one by one on the terminal


@dataclass
class Tally:
    """What happened on the way through a file."""

    graphs: int = 0
    confusion: "ConfusionMatrix | None" = None  # of graphs that came with a class that the run knows
    seconds: float = 0.0  # of computing, without reading and writing
    whole_seconds: float = 0.0  # with both
    unseen: Counter = field(default_factory=Counter)  # labels never seen in training
    unknown: Counter = field(default_factory=Counter)  # classes that the run does not know
    skipped: int = 0  # graphs that could not be read
    first_skipped: list[str] = field(default_factory=list)  # some of them; a long file may have very many
    predicted: Counter = field(default_factory=Counter)

    def compare(self, own: Sequence[str], predicted: Sequence[str], class_names: Sequence[str]) -> None:
        """The classes that graphs came with, "" where there is none, and those they are given."""
        number = {name: place for place, name in enumerate(class_names)}
        known = [
            (number[answer], number[name])
            for answer, name in zip(predicted, own, strict=True)
            if name in number
        ]
        self.unknown.update(name for name in own if name and name not in number)
        if known and self.confusion is None:
            # Here, as it takes a while to load and most files have no classes.
            from torchmetrics.classification import MulticlassConfusionMatrix

            self.confusion = MulticlassConfusionMatrix(len(class_names))
        if known and self.confusion is not None:
            self.confusion.update(*torch.tensor(known).T)


def predict_file(
    run: TrainedRun,
    pieces: Iterable[GraphArrays],
    out: Path,
    embeddings: Path | None = None,
    strict: bool = False,
    on_piece: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Write a CSV with a line a graph, and the embeddings of the first fold asked where a path is given for them.

    What could not be read is told in a file beside it, a line each. `strict` refuses it, and graphs with labels never seen in
    training, instead of counting them.
    """
    tally, begun = Tally(), time.perf_counter()
    left_out = skipped_path(out)
    with ExitStack() as files:
        answers = files.enter_context(atomic_path(out))
        vectors = files.enter_context(atomic_path(embeddings)) if embeddings else None
        skipped = files.enter_context(temporary_sibling(left_out))
        for arrays in pieces:
            note_skipped(arrays.skipped, skipped, tally)
            if strict and arrays.skipped:
                raise DataError(f"{arrays.skipped[0]}; strict=false leaves such out and lists them")
            if not arrays.graphs:
                continue
            dataset = run.encode(arrays)
            tally.unseen.update(dataset.unseen)
            if strict and dataset.unseen:
                raise DataError(
                    f"labels never seen in training: {named(tally.unseen)}; strict=false answers all the same, "
                    "with zeros for them"
                )
            start = time.perf_counter()
            frame = answered(run, dataset, arrays.graph_labels, tally)
            found = run.folds[0].embeddings(dataset) if vectors else None
            tally.seconds += time.perf_counter() - start
            append(frame, answers, "%.6g")
            if vectors and found is not None:
                columns = pd.DataFrame(found.numpy()).add_prefix("e").assign(id=list(dataset.names))
                append(columns.set_index("id").reset_index(), vectors, "%.9g")
            tally.whole_seconds = time.perf_counter() - begun
            on_piece(tally)
        if not tally.graphs:
            raise DataError(
                "there is no graph to predict: "
                + (tally.first_skipped[0] if tally.skipped else "none was read")
            )
        left_out.unlink(missing_ok=True)  # that of an earlier time
        if tally.skipped:
            write_bytes(left_out, skipped.read_bytes())
    return tally


def skipped_path(out: Path) -> Path:
    """Where it stands what of the input has no answer in `out`."""
    return out.with_name(f"{out.stem}_skipped.txt")


def note_skipped(reasons: Sequence[str], path: Path, tally: Tally) -> None:
    tally.skipped += len(reasons)
    tally.first_skipped += reasons[: MOST_SKIPPED - len(tally.first_skipped)]
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(f"{reason}\n" for reason in reasons)


def append(frame: pd.DataFrame, path: Path, digits: str) -> None:
    """More lines of a CSV; the first bring the header."""
    header = path.stat().st_size == 0
    frame.to_csv(path, mode="a", header=header, index=False, float_format=digits, lineterminator="\n")


def answered(run: TrainedRun, dataset: GraphDataset, labels: np.ndarray | None, tally: Tally) -> pd.DataFrame:
    """The rows of these graphs, counted; with their own class beside the answer where they came with one."""
    answers = run.answer(dataset)
    frame = answers.to_frame()
    if labels is not None:
        own = ["" if label is None else str(label) for label in labels.tolist()]
        frame.insert(1, "label", own)
        tally.compare(own, answers.predicted, run.class_names)
    tally.graphs += len(answers)
    tally.predicted.update(answers.predicted)
    return frame


def named(labels: Counter, most: int = 10) -> str:
    """The commonest of them with their counts."""
    told = ", ".join(f"{name} ({count})" for name, count in labels.most_common(most))
    return told + (f" and {len(labels) - most} others" if len(labels) > most else "")


def training_passes(run: TrainedRun) -> float | None:
    """Graphs that training went through in a second and a core, epochs counted; None of kernels, which have none."""
    graphs = seconds = 0.0
    for fold in run.folds:
        result = run.run.results[fold.number]
        held_out = len(result.test_labels) + len(
            result.validation_labels if result.validation_labels is not None else ()
        )
        if result.history[0].C is not None:
            return None
        graphs += (fold.info.graphs - held_out) * len(result.history)
        seconds += sum(record.seconds for record in result.history)
    return graphs / seconds if seconds else None
