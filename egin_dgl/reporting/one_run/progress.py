"""Training progress: a bar per fold and one for the run on a terminal, plain lines elsewhere."""

import math
import time
from collections.abc import Mapping

from rich import progress as bar
from rich.console import Console

from egin_dgl.evaluation.history import EpochRecord
from egin_dgl.reporting.formatting import PERCENT, unit_of


class FoldProgress:
    """A context manager, called with (fold, record) after each of the `epochs` of a fold, on stderr by default.

    `before`: epochs that each fold has already trained, if the run is resumed.
    """

    def __init__(self, before: Mapping[int, int], epochs: int, console: Console | None = None):
        self.console = console or Console(stderr=True)
        self.epochs = epochs
        self.before, self.done = before, dict(before)
        self.start: float | None = None  # of the first epoch
        self.bars: bar.Progress | None = None
        if self.console.is_terminal:
            self.bars = bar.Progress(*columns(self.console.width), console=self.console)
            self.tasks = {
                fold: self.bars.add_task("", total=epochs, completed=done, name=f"fold {fold}")
                for fold, done in before.items()
            }
            if len(before) > 1:
                self.run = self.bars.add_task("", total=epochs * len(before), name="run")

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
        if self.bars:
            self.bars.update(self.tasks[fold], completed=done, description=describe_epoch(record))
            if len(self.done) > 1:
                self.bars.update(self.run, completed=sum(self.done.values()))
        elif done % max(1, self.epochs // 4) == 0 or done == self.epochs:
            step = "epoch" if record.C is None else f"C {record.C:g},"
            text = f"fold {fold}  {step} {done}/{self.epochs}  {describe_epoch(record)}"
            self.console.print(f"{text}  {self.seconds_left:.0f} s left", highlight=False)

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
    return [
        *(steps if width >= 80 else steps[::2]),
        bar.TextColumn("{task.description}"),
        bar.TimeRemainingColumn(),
    ]


def describe_epoch(record: EpochRecord) -> str:
    """The training loss and the validation score, without one the test score, else the training score."""
    scores = {"val": record.val_score, "test": record.test_score, "train": record.train_score}
    split = next(split for split, score in scores.items() if not math.isnan(score) or split == "train")
    unit = unit_of(record.metric)
    percent = " %" if unit is PERCENT else ""
    return f"loss {record.train_loss:.3f}  {split} {unit.text(scores[split]):>5}{percent}"
