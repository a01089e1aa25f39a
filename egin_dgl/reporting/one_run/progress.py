"""A live bar per fold on a terminal, plain lines elsewhere."""

import math
from collections.abc import Sequence

from rich import progress as bar
from rich.console import Console

from egin_dgl.evaluation.history import EpochRecord


class FoldProgress:
    """Use as a context manager and call it with (fold, record) after each epoch."""

    def __init__(self, folds: Sequence[int], epochs: int, console: Console | None = None):
        self.console = console or Console(stderr=True)
        self.epochs = epochs
        self.seconds = dict.fromkeys(folds, 0.0)
        self.bars: bar.Progress | None = None
        if self.console.is_terminal:
            steps = bar.TextColumn("fold {task.fields[fold]}"), bar.BarColumn(24), bar.MofNCompleteColumn()
            told, left = bar.TextColumn("{task.description}"), bar.TextColumn("left")
            times = bar.TimeElapsedColumn(), left, bar.TimeRemainingColumn()
            self.bars = bar.Progress(*steps, told, *times, console=self.console)
            self.tasks = {n: self.bars.add_task("", total=epochs, fold=n, start=False) for n in folds}

    def __enter__(self) -> "FoldProgress":
        if self.bars:
            self.bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
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
            step = "epoch " if record.C is None else f"C {record.C:g}, "
            step += f"{record.epoch}/{self.epochs}"
            self.console.print(f"fold {fold}  {step}  {describe(record)}  {left:.0f} s left", highlight=False)


def describe(record: EpochRecord) -> str:
    """The loss and the score worth watching: validation, else test, else training."""
    scores = {"val": record.val_accuracy, "test": record.score, "train": record.train_accuracy}
    part = next(part for part, score in scores.items() if not math.isnan(score) or part == "train")
    return f"loss {record.train_loss:.3f}  {part} {100 * scores[part]:5.1f} %"
