"""Training progress: a bar per fold and one for the run on a terminal, plain lines elsewhere."""

import math
import time
from collections.abc import Mapping
from datetime import timedelta

from rich import progress as bar
from rich.console import Console

from egin_dgl.evaluation.history import EpochRecord


class FoldProgress:
    """A context manager, called with (fold, record) after each epoch.

    Args:
        before: epochs that each fold has already trained, if the run is resumed.
        epochs: epochs of a fold.
        console: default stderr.
    """

    def __init__(self, before: Mapping[int, int], epochs: int, console: Console | None = None):
        self.console = console or Console(stderr=True)
        self.epochs = epochs
        self.before, self.done = before, dict(before)
        self.seconds = dict.fromkeys(before, 0.0)
        self.start: float | None = None  # of the first epoch
        self.bars: bar.Progress | None = None
        if self.console.is_terminal:
            self.bars = bar.Progress(*columns(self.console.width), console=self.console)
            self.tasks = {
                fold: self.bars.add_task("", total=epochs, completed=done, name=f"fold {fold}", left="")
                for fold, done in before.items()
            }
            if len(before) > 1:
                self.run = self.bars.add_task("", total=epochs * len(before), name="run", left="")

    def __enter__(self) -> "FoldProgress":
        if self.bars:
            self.bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bars:
            self.bars.stop()

    def __call__(self, fold: int, record: EpochRecord) -> None:
        self.start = self.start or time.monotonic() - record.seconds
        self.done[fold] = done = record.epoch
        self.seconds[fold] += record.seconds
        fold_left = self.seconds[fold] / max(1, done - self.before[fold]) * (self.epochs - done)
        if self.bars:
            left = f"left {timedelta(seconds=round(fold_left))}"
            self.bars.update(self.tasks[fold], completed=done, description=describe_epoch(record), left=left)
            if len(self.done) > 1:
                left = f"left {timedelta(seconds=round(self.seconds_left))}"
                self.bars.update(self.run, completed=sum(self.done.values()), left=left)
        elif done % max(1, self.epochs // 4) == 0 or done == self.epochs:
            step = (
                f"epoch {done}/{self.epochs}" if record.C is None else f"C {record.C:g}, {done}/{self.epochs}"
            )
            left = f"{fold_left:.0f} s left" + (
                f", run {self.seconds_left:.0f} s" if len(self.done) > 1 else ""
            )
            self.console.print(f"fold {fold}  {step}  {describe_epoch(record)}  {left}", highlight=False)

    @property
    def seconds_left(self) -> float:
        """Estimate for the whole run, without early stopping."""
        done = sum(self.done.values())
        elapsed = time.monotonic() - self.start if self.start else 0.0
        pace = elapsed / max(1, done - sum(self.before.values()))
        return pace * (self.epochs * len(self.done) - done)


def columns(width: int) -> list[bar.ProgressColumn]:
    """Without bars below 80 columns."""
    steps = [bar.TextColumn("{task.fields[name]}"), bar.BarColumn(20), bar.MofNCompleteColumn()]
    texts = [bar.TextColumn("{task.description}"), bar.TextColumn("{task.fields[left]}")]
    return [*(steps if width >= 80 else steps[::2]), *texts]


def describe_epoch(record: EpochRecord) -> str:
    """The training loss and the validation score, without one the test score, else the training score."""
    scores = {"val": record.val_accuracy, "test": record.score, "train": record.train_accuracy}
    split = next(split for split, score in scores.items() if not math.isnan(score) or split == "train")
    return f"loss {record.train_loss:.3f}  {split} {100 * scores[split]:5.1f} %"
