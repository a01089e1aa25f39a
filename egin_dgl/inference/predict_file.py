"""Predictions for a file of any length: read, predicted and written in chunks."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch
from torch import Tensor

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.errors import DataError
from egin_dgl.files import atomic_path, remove_abandoned, write_text
from egin_dgl.inference.trained_run import Predictions, TrainedRun

if TYPE_CHECKING:
    from torchmetrics.classification import MulticlassConfusionMatrix

MAX_SKIPPED = 5  # reasons that are printed; the file of skipped graphs has all


@dataclass
class FileSummary:
    """Counts over a file."""

    graphs: int = 0
    seconds: float = 0.0
    predicted: Counter = field(default_factory=Counter)  # classes
    confusion: "MulticlassConfusionMatrix | None" = None  # of graphs with a class that the run knows
    unseen: Counter = field(default_factory=Counter)  # labels not in the training data
    unknown: Counter = field(default_factory=Counter)  # classes that the run does not know
    skipped: list[str] = field(default_factory=list)  # why graphs could not be read

    def add_known_classes(self, labels: Sequence[str], predictions: Predictions) -> None:
        """Compare predictions with the classes in the file, "" where there is none."""
        index = {name: number for number, name in enumerate(predictions.class_names)}
        found = zip(predictions.predicted, labels, strict=True)
        pairs = [(index[name], index[label]) for name, label in found if label in index]
        self.unknown.update(label for label in labels if label and label not in index)
        if pairs and self.confusion is None:
            # The import takes half a second, and most files have no classes.
            from torchmetrics.classification import MulticlassConfusionMatrix

            self.confusion = MulticlassConfusionMatrix(len(index))
        if pairs and self.confusion is not None:
            self.confusion.update(*torch.tensor(pairs).T)


def predict_file(
    run: TrainedRun,
    chunks: Iterable[GraphArrays],
    out: Path,
    embeddings: Path | None = None,
    strict: bool = False,
    on_chunk: Callable[[FileSummary], None] = lambda summary: None,
) -> FileSummary:
    """Write a CSV with a row per graph, and a text file that lists graphs which could not be read, if any.

    Args:
        chunks: raw graphs, see `TrainedRun.read_chunks`.
        embeddings: CSV for the embeddings of the first fold.
        strict: raise a `DataError` for unreadable graphs and labels unseen in training.
    """
    summary, start = FileSummary(), time.perf_counter()
    for path in filter(None, (out, embeddings)):
        remove_abandoned(path)
    with ExitStack() as files:
        predictions_file = files.enter_context(atomic_path(out))
        embeddings_file = files.enter_context(atomic_path(embeddings)) if embeddings else None
        for arrays in chunks:
            summary.skipped += arrays.skipped
            if strict and arrays.skipped:
                raise DataError(f"{arrays.skipped[0]}; strict=false skips and lists such graphs")
            if not arrays.graphs:
                continue
            dataset = run.encode(arrays)
            summary.unseen.update(dataset.unseen)
            if strict and dataset.unseen:
                raise DataError(
                    f"labels unseen in training: {format_counts(summary.unseen)}; strict=false encodes them as zeros"
                )
            predictions = run.predict_dataset(dataset)
            summary.graphs += len(predictions)
            summary.predicted.update(predictions.predicted)
            frame = predictions.to_frame()
            if arrays.targets is not None:
                labels = ["" if label is None else str(label) for label in arrays.targets[:, 0].tolist()]
                frame.insert(1, "label", labels)
                summary.add_known_classes(labels, predictions)
            append_csv(frame, predictions_file, "%.6g")
            if embeddings_file:
                vectors = pd.DataFrame(run.folds[0].embeddings(dataset).numpy()).add_prefix("e")
                vectors.insert(0, "id", list(dataset.names))
                append_csv(vectors, embeddings_file, "%.9g")
            summary.seconds = time.perf_counter() - start
            on_chunk(summary)
        if not summary.graphs:
            reason = summary.skipped[0] if summary.skipped else "the file lists none"
            raise DataError(f"there is no graph to predict: {reason}")
        skipped_path(out).unlink(missing_ok=True)  # of an earlier call
        if summary.skipped:
            write_text(skipped_path(out), "".join(f"{reason}\n" for reason in summary.skipped))
    return summary


def skipped_path(out: Path) -> Path:
    """The list of graphs that could not be read."""
    return out.with_name(f"{out.stem}_skipped.txt")


def append_csv(frame: pd.DataFrame, path: Path, float_format: str) -> None:
    """Append rows to a CSV, with a header if it is empty."""
    header = path.stat().st_size == 0
    frame.to_csv(path, mode="a", header=header, index=False, float_format=float_format, lineterminator="\n")


def format_counts(labels: Counter, limit: int = 10) -> str:
    """The most common labels with their counts."""
    text = ", ".join(f"{name} ({count})" for name, count in labels.most_common(limit))
    return text + (f" and {len(labels) - limit} others" if len(labels) > limit else "")


def format_speed(summary: FileSummary) -> str:
    return f"{summary.graphs / max(summary.seconds, 1e-9):,.0f} graphs per second"


def format_predictions(run: TrainedRun, summary: FileSummary, out: Path) -> str:
    """Model, predicted classes, accuracy if classes are known, warnings, speed and output file."""
    models = f"{len(run.folds)} folds" if len(run.folds) > 1 else f"fold {run.folds[0].number}"
    models = "refit on all graphs" if run.run.settings["cv"].get("refit") else models
    classes = ", ".join(f"{name} {summary.predicted[name]:,}" for name in run.class_names)
    lines = [f"{run.run.model} ({models}): {summary.graphs:,} graphs, {classes}"]
    if summary.confusion is not None:
        lines.append(format_accuracy(summary.confusion.compute()))
    if not run.calibrated:
        lines.append("probabilities are not calibrated: the run has no validation set")
    if summary.unseen:
        lines.append(f"labels unseen in training, encoded as zeros: {format_counts(summary.unseen)}")
    if summary.unknown:
        lines.append(f"classes unknown to the run, not evaluated: {format_counts(summary.unknown)}")
    lines += [f"skipped: {line}" for line in summary.skipped[:MAX_SKIPPED]]
    if (more := len(summary.skipped) - MAX_SKIPPED) > 0:
        lines.append(f"skipped: {more:,} more, listed in {skipped_path(out)}")
    return "\n".join([*lines, format_speed(summary), f"in {out}"])


def format_accuracy(counts: Tensor) -> str:
    """Accuracy and balanced accuracy of a confusion matrix (classes, classes), true classes in rows."""
    total, correct = counts.sum(dim=1), counts.diagonal()
    balanced = (correct[total > 0] / total[total > 0]).mean()
    accuracy = f"accuracy {100 * correct.sum() / total.sum():.1f} % ({correct.sum():,}/{total.sum():,})"
    return f"{accuracy}, balanced accuracy {100 * balanced:.1f} %"
