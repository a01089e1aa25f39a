"""A live bar per fold on a terminal, plain lines elsewhere."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from egin_dgl.evaluation.history import EpochRecord


class FoldProgress:
    """Use as a context manager and call it with (fold, record) after each epoch."""

    def __init__(self, folds: Sequence[int], epochs: int, console: Console | None = None):
        self.console = console or Console(stderr=True)
        self.epochs = epochs
        self.seconds = dict.fromkeys(folds, 0.0)
        self.bars: Progress | None = None
        if self.console.is_terminal:
            self.bars = Progress(
                TextColumn("fold {task.fields[fold]}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=self.console,
            )
            self.tasks = {
                fold: self.bars.add_task("", total=epochs, fold=fold, start=False) for fold in folds
            }

    def __enter__(self) -> "FoldProgress":
        if self.bars:
            self.bars.start()
        return self

    def __exit__(self, *exception) -> None:
        if self.bars:
            self.bars.stop()

    def __call__(self, fold: int, record: EpochRecord) -> None:
        if self.bars:
            self.bars.start_task(self.tasks[fold])
            self.bars.update(self.tasks[fold], completed=record.epoch, description=describe(record))
            return
        self.seconds[fold] += record.seconds
        if record.epoch % max(1, self.epochs // 4) == 0 or record.epoch == self.epochs:
            left = self.seconds[fold] / record.epoch * (self.epochs - record.epoch)
            step = f"epoch {record.epoch}/{self.epochs}"
            if record.C is not None:
                step = f"C {record.C:g}, {record.epoch}/{self.epochs}"
            self.console.print(f"fold {fold}  {step}  {describe(record)}  {left:.0f} s left", highlight=False)


def describe(record: EpochRecord) -> str:
    """The loss and the accuracy worth watching: validation, or test where there is no validation part."""
    name, value = ("val", record.val_accuracy)
    if math.isnan(value):
        name, value = ("test", record.test_accuracy)
    return f"loss {record.train_loss:.3f}  {name} {100 * value:5.1f} %"
