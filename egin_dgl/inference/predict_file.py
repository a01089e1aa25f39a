"""Predictions for a file of any length: read, predicted and written in chunks."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from egin_dgl.data.arrays import GraphArrays, ReadChunk
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.errors import DataError
from egin_dgl.evaluation.metrics import Metrics
from egin_dgl.files import atomic_path, remove_abandoned
from egin_dgl.inference.predictions import REASON, Predictions
from egin_dgl.inference.trained_run import TrainedRun
from egin_dgl.parallel import map_chunks

MAX_SKIPPED = 5  # reasons that are printed; the column of the table has all


@dataclass
class FileSummary:
    """Counts over a file."""

    graphs: int = 0
    seconds: float = 0.0
    predicted: Counter = field(default_factory=Counter)  # classes
    known: list[tuple[np.ndarray, np.ndarray]] = field(
        default_factory=list
    )  # logits and labels of graphs with a target
    unseen: Counter = field(default_factory=Counter)  # labels not in the training data
    unknown: Counter = field(
        default_factory=Counter
    )  # targets that mean nothing to the run, such as other classes
    skipped: int = 0
    reasons: list[str] = field(default_factory=list)  # why the first of these could not be read

    def add(self, arrays: GraphArrays, dataset: GraphDataset, predictions: Predictions) -> None:
        """Count a chunk, and keep what its metrics need."""
        self.graphs += len(dataset)
        if names := predictions.info.class_names:
            self.predicted.update(names[number] for number in predictions.values.argmax(dim=1).tolist())
        if arrays.targets is None:
            return
        labels = dataset.labels
        known = labels[:, None] >= 0 if predictions.info.classes else ~labels.isnan()  # (G, targets)
        evaluated = known.any(dim=1)
        if evaluated.any():
            self.known.append((predictions.logits[evaluated].float().numpy(), labels[evaluated].numpy()))
        others = arrays.targets[~known.numpy()].tolist()
        self.unknown.update(str(target) for target in others if target is not None)

    def merge(self, other: "FileSummary") -> None:
        """Add the counts of the next chunk."""
        self.graphs += other.graphs
        self.known += other.known
        self.skipped += other.skipped
        self.reasons += other.reasons[: MAX_SKIPPED - len(self.reasons)]
        for name in ("predicted", "unseen", "unknown"):
            getattr(self, name).update(getattr(other, name))


def predict_file(
    run: TrainedRun,
    chunks: Iterable[ReadChunk],
    out: Path,
    embeddings: Path | None = None,
    strict: bool = False,
    on_chunk: Callable[[FileSummary], None] = lambda summary: None,
) -> FileSummary:
    """Write a CSV with the rows of the input and their predictions; a row that cannot be read has blanks and a reason.

    Chunks are read and predicted in the processes that `map_chunks` may use, each as in this process alone.

    Args:
        chunks: raw graphs, see `TrainedRun.open_chunks`.
        embeddings: CSV for the embeddings of the first fold.
        strict: raise a `DataError` for unreadable graphs and labels unseen in training.
    """
    summary, start = FileSummary(), time.perf_counter()
    for path in filter(None, (out, embeddings)):
        remove_abandoned(path)
    with ExitStack() as files:
        paths = [files.enter_context(atomic_path(path)) for path in (out, embeddings) if path]
        for counts, tables in map_chunks(predict_chunk, (run, strict, embeddings is not None), chunks):
            summary.merge(counts)
            for path, table in zip(paths, tables, strict=False):
                append_csv(table, path)
            summary.seconds = time.perf_counter() - start
            on_chunk(summary)
        if not summary.graphs:
            reason = summary.reasons[0] if summary.reasons else "the file lists none"
            raise DataError(f"there is no graph to predict: {reason}")
    return summary


CsvText = tuple[str, str]  # header and rows


def predict_chunk(
    shared: tuple[TrainedRun, bool, bool], read: ReadChunk
) -> tuple[FileSummary, list[CsvText]]:
    """Counts of a chunk, its predictions and, if requested, its embeddings."""
    (run, strict, with_embeddings), arrays = shared, read()
    summary = FileSummary(skipped=len(arrays.skipped), reasons=list(arrays.skipped[:MAX_SKIPPED]))
    if strict and arrays.skipped:
        raise DataError(f"{arrays.skipped[0]}; strict=false leaves the prediction of such rows blank")
    dataset, predictions = run.predict_arrays(arrays)
    labels = None if arrays.targets is None or dataset is None else dataset.labels
    tables = [csv_text(predictions.to_frame(arrays.rows, labels), "%.6g")]
    if dataset is None:
        return summary, tables
    summary.unseen.update(dataset.unseen)
    if strict and dataset.unseen:
        raise DataError(
            f"labels unseen in training: {format_counts(summary.unseen)}; strict=false encodes them as zeros"
        )
    summary.add(arrays, dataset, predictions)
    if with_embeddings:
        vectors = pd.DataFrame(run.folds[0].embeddings(dataset).numpy()).add_prefix("e")
        vectors.insert(0, "id", list(dataset.names))
        tables.append(csv_text(vectors, "%.9g"))
    return summary, tables


def csv_text(frame: pd.DataFrame, float_format: str) -> CsvText:
    rows = frame.to_csv(header=False, index=False, float_format=float_format, lineterminator="\n")
    return frame[:0].to_csv(index=False, lineterminator="\n"), rows


def append_csv(table: CsvText, path: Path) -> None:
    """Append rows to a CSV, with a header if it is empty."""
    header, rows = table
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(rows if file.tell() else header + rows)


def format_counts(labels: Counter, limit: int = 10) -> str:
    """The most common labels with their counts."""
    text = ", ".join(f"{name} ({count})" for name, count in labels.most_common(limit))
    return text + (f" and {len(labels) - limit} others" if len(labels) > limit else "")


def format_speed(summary: FileSummary) -> str:
    return f"{summary.graphs / max(summary.seconds, 1e-9):,.0f} graphs per second"


def format_predictions(run: TrainedRun, summary: FileSummary, out: Path) -> str:
    """Models, predicted classes, metrics if targets are known, warnings, speed and output file."""
    models = f"{len(run.folds)} models" if len(run.folds) > 1 else f"fold {run.folds[0].number}"
    models = "refit on all graphs" if run.run.settings["cv"].get("refit") else models
    classes = "".join(f", {name} {summary.predicted[name]:,}" for name in run.class_names)
    lines = [f"{run.run.model} ({models}): {summary.graphs:,} graphs{classes}"]
    if summary.known:
        logits, labels = (torch.from_numpy(np.concatenate(each)) for each in zip(*summary.known, strict=True))
        lines += format_metrics(run.task.metrics, logits, labels, run.info.target_names)
    if run.task.has_probabilities and not run.calibrated:
        lines.append("probabilities are not calibrated")
    if run.level is not None and run.quantiles is None:
        lines.append(f"no {run.task.conformal_name}: the run has no scores of test graphs")
    elif run.quantiles is not None and run.quantiles.isinf().any():
        lines.append(
            f"too few test graphs for {run.task.conformal_name} at level={run.level:g}: they hold everything"
        )
    if summary.unseen:
        lines.append(f"labels unseen in training, encoded as zeros: {format_counts(summary.unseen)}")
    if summary.unknown:
        what = (
            "classes unknown to the run"
            if run.info.classes
            else f"targets that task={run.task.name} cannot take"
        )
        lines.append(f"{what}, not evaluated: {format_counts(summary.unknown)}")
    lines += [f"not predicted: {line}" for line in summary.reasons]
    if (more := summary.skipped - len(summary.reasons)) > 0:
        lines.append(f"not predicted: {more:,} more, see the column {REASON}")
    return "\n".join([*lines, format_speed(summary), f"in {out}"])


def format_metrics(metrics: Metrics, logits: Tensor, labels: Tensor, names: Sequence[str]) -> list[str]:
    """All metrics of graphs with a known target, the mean over targets, then those of each if there are several."""
    whole = {name: metric(logits, labels) for name, metric in metrics.items()}
    lines = [f"with known targets {len(labels):,}: {join_values(whole)}"]
    if labels.ndim == 2 and labels.shape[1] > 1:
        each = {name: metric.per_target(logits, labels) for name, metric in metrics.items()}
        for target, name in enumerate(names):
            known = int((~labels[:, target].isnan()).sum())
            values = {metric: found[target] for metric, found in each.items()}
            lines.append(f"  {name} ({known:,}): {join_values(values)}")
    return lines


def join_values(values: Mapping[str, float]) -> str:
    """Metrics that are defined, with their names."""
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items() if value == value) or "undefined"
