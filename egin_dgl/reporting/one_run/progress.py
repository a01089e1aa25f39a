"""A live bar per fold and one for the run on a terminal, plain lines elsewhere."""

import math
import time
from collections.abc import Mapping
from datetime import timedelta

from rich import progress as bar
from rich.console import Console

from egin_dgl.evaluation.history import EpochRecord


class FoldProgress:
    """Use as a context manager and call it with (fold, record) after each epoch.

    `before` has the epochs that each fold begins with, where a run is resumed.
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
        self.done[fold] = record.epoch
        self.seconds[fold] += record.seconds
        done, steps = record.epoch, f"{record.epoch}/{self.epochs}"
        of_fold = self.seconds[fold] / max(1, done - self.before[fold]) * (self.epochs - done)
        if self.bars:
            left = f"left {timedelta(seconds=round(of_fold))}"
            self.bars.update(self.tasks[fold], completed=done, description=describe(record), left=left)
            if len(self.done) > 1:
                left = f"left {timedelta(seconds=round(self.left))}"
                self.bars.update(self.run, completed=sum(self.done.values()), left=left)
        elif done % max(1, self.epochs // 4) == 0 or done == self.epochs:
            step = f"epoch {steps}" if record.C is None else f"C {record.C:g}, {steps}"
            left = f"{of_fold:.0f} s left" + (f", run {self.left:.0f} s" if len(self.done) > 1 else "")
            self.console.print(f"fold {fold}  {step}  {describe(record)}  {left}", highlight=False)

    @property
    def left(self) -> float:
        """Seconds of the whole run, at the pace of all its workers so far; fewer, where folds stop early."""
        done = sum(self.done.values())
        elapsed = time.monotonic() - self.start if self.start else 0.0
        pace = elapsed / max(1, done - sum(self.before.values()))
        return pace * (self.epochs * len(self.done) - done)


def columns(width: int) -> list[bar.ProgressColumn]:
    """What fits: in fewer than 80 columns no bar is drawn."""
    steps = [bar.TextColumn("{task.fields[name]}"), bar.BarColumn(20), bar.MofNCompleteColumn()]
    told = [bar.TextColumn("{task.description}"), bar.TextColumn("{task.fields[left]}")]
    return [*(steps if width >= 80 else steps[::2]), *told]


def describe(record: EpochRecord) -> str:
    """The loss and the score worth watching: validation, else test, else training."""
    scores = {"val": record.val_accuracy, "test": record.score, "train": record.train_accuracy}
    part = next(part for part, score in scores.items() if not math.isnan(score) or part == "train")
    return f"loss {record.train_loss:.3f}  {part} {100 * scores[part]:5.1f} %"
