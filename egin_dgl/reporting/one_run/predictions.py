"""What a person sees of predictions: a bar while they are made, and what they came to."""

from pathlib import Path

from rich import progress
from rich.console import Console
from torch import Tensor

from egin_dgl.inference.predict_file import Tally, named, skipped_path, training_passes
from egin_dgl.inference.trained_run import TrainedRun


class GraphsBar:
    """Graphs answered so far and how fast; their number is not known before the end of a file."""

    def __init__(self, console: Console):
        columns = progress.SpinnerColumn(), progress.TextColumn("{task.description}")
        self.bar = progress.Progress(*columns, progress.TimeElapsedColumn(), console=console, transient=True)
        self.task = self.bar.add_task("reading", total=None)

    def __enter__(self) -> "GraphsBar":
        if self.bar.console.is_terminal:  # elsewhere it would leave empty lines
            self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar.live.is_started:
            self.bar.stop()

    def __call__(self, tally: Tally) -> None:
        speed = tally.graphs / max(tally.whole_seconds, 1e-9)
        self.bar.update(self.task, description=f"{tally.graphs:,} graphs, {speed:,.0f} a second")


def told(run: TrainedRun, tally: Tally, out: Path) -> str:
    """How many, how sure one may be, how fast, and what was strange."""
    folds = f"{len(run.folds)} folds" if len(run.folds) > 1 else f"fold {run.folds[0].number}"
    folds = "all graphs" if run.run.settings["cv"].get("refit") else folds
    classes = ", ".join(f"{name} {tally.predicted[name]:,}" for name in run.class_names)
    lines = [f"{run.run.model} of {folds}; {tally.graphs:,} graphs: {classes}"]
    if tally.confusion is not None:
        lines.append(compared_with(tally.confusion.compute()))
    if not run.calibrated:
        lines.append("probabilities are not calibrated: the run kept no validation scores to learn it from")
    if tally.unseen:
        lines.append(f"labels never seen in training, answered as zeros: {named(tally.unseen)}")
    if tally.unknown:
        lines.append(f"classes that the run does not know, not compared: {named(tally.unknown)}")
    lines += [f"skipped: {line}" for line in tally.first_skipped]
    if more := tally.skipped - len(tally.first_skipped):
        lines.append(f"skipped: {more:,} more; all of them in {skipped_path(out)}")
    lines += [speed(run, tally), f"in {out}"]
    return "\n".join(lines)


def compared_with(counts: Tensor) -> str:
    """Of graphs whose class is known: (classes, classes), true class by answer."""
    known, right = counts.sum(dim=1), counts.diagonal()
    balanced = (right[known > 0] / known[known > 0]).mean()
    return (
        f"{right.sum():,} of {known.sum():,} with a known class are answered so ({100 * right.sum() / known.sum():.1f} %; "
        f"balanced accuracy {100 * balanced:.1f} %)"
    )


def speed(run: TrainedRun, tally: Tally) -> str:
    """With reading and writing, which take most of it; and of the models alone, beside training's.

    A graph that ten folds answer is ten passes.
    """
    whole = tally.graphs / max(tally.whole_seconds, 1e-9)
    rate = tally.graphs / max(tally.seconds, 1e-9)
    text = f"{whole:,.0f} graphs a second from file to file; computing alone {rate:,.0f}"
    training = training_passes(run)
    if training:
        passes = rate * len(run.folds)
        each = f", each by {len(run.folds)} models" if len(run.folds) > 1 else ""
        text += f"{each}: {passes / training:.1f} times the graphs that training went through in a second"
    return text
