"""A summary of predictions for a file on the terminal."""

from pathlib import Path

from torch import Tensor

from egin_dgl.inference.predict_file import FileSummary, format_counts, skipped_path
from egin_dgl.inference.trained_run import TrainedRun


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
    lines += [f"skipped: {line}" for line in summary.first_skipped]
    if more := summary.skipped - len(summary.first_skipped):
        lines.append(f"skipped: {more:,} more, listed in {skipped_path(out)}")
    return "\n".join([*lines, format_speed(summary), f"in {out}"])


def format_accuracy(counts: Tensor) -> str:
    """Accuracy and balanced accuracy of a confusion matrix (classes, classes), true classes in rows."""
    total, correct = counts.sum(dim=1), counts.diagonal()
    balanced = (correct[total > 0] / total[total > 0]).mean()
    accuracy = f"accuracy {100 * correct.sum() / total.sum():.1f} % ({correct.sum():,}/{total.sum():,})"
    return f"{accuracy}, balanced accuracy {100 * balanced:.1f} %"
