"""TensorBoard: a run per fold with its curves, and the run's own folder with means, hyper-parameters, pictures."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from egin_dgl.data.dataset import Indices
from egin_dgl.evaluation.history import EpochRecord, History
from egin_dgl.files import writing

CURVES = {
    "loss/train": "train_loss",
    "loss/validation": "val_loss",
    "loss/test": "test_loss",
    "accuracy/train": "train_accuracy",
    "accuracy/validation": "val_accuracy",
    "accuracy/test": "test_accuracy",
}
STEPS = {"optimizer/learning_rate": "lr", "optimizer/gradient_norm": "grad_norm", "time/seconds": "seconds"}


class FoldTracker:
    """Writes the events of one fold into its folder; of a resumed fold, later steps written before are purged."""

    def __init__(self, folder: Path, first_epoch: int = 1):
        self.folder = folder
        with writing_events(folder):
            self.writer = SummaryWriter(str(folder), purge_step=first_epoch if first_epoch > 1 else None)

    def epoch(self, record: EpochRecord, epsilons: dict[str, float]) -> None:
        scalars = {tag: getattr(record, name) for tag, name in (CURVES | STEPS).items()}
        if record.C is not None:  # which penalty this step is: steps are whole numbers
            scalars["kernel/C"] = record.C
        scalars |= {f"epsilon/{layer}": eps for layer, eps in epsilons.items()}
        with writing_events(self.folder):
            for tag, value in scalars.items():
                if value == value:  # NaN: no such part
                    self.writer.add_scalar(tag, value, record.epoch)

    def embeddings(self, vectors: Tensor, labels: Tensor, predictions: Tensor, graphs: Indices) -> None:
        """The test part for the projector, each point with its graph's number, class and prediction."""
        rows = [[str(int(v)) for v in row] for row in zip(graphs, labels, predictions, strict=True)]
        header = ["graph", "label", "predicted"]
        with writing_events(self.folder):
            self.writer.add_embedding(vectors, rows, metadata_header=header, tag="test")

    def close(self) -> None:
        with writing_events(self.folder):
            self.writer.close()


@contextmanager
def writing_events(folder: Path) -> Iterator[None]:
    """A full disk is told as for any other file, and once: the writer's thread keeps its error for the next call."""
    threading.excepthook = told_by_the_caller
    with writing(folder / "events.out.tfevents"):
        yield


def told_by_the_caller(failure: threading.ExceptHookArgs) -> None:
    if type(failure.thread).__name__ != "_AsyncWriterThread":
        threading.__excepthook__(failure)


def track_run(
    folder: Path, histories: Sequence[History], hparams: dict, metrics: dict, figures: dict
) -> None:
    """Across folds: mean and spread of each curve, hyper-parameters with the final metrics, figures as images."""
    with writing_events(folder), SummaryWriter(str(folder)) as writer:
        reached = min(len(history) for history in histories)
        layout = {}
        for tag, name in CURVES.items():
            curves = np.array(
                [[getattr(record, name) for record in history[:reached]] for history in histories]
            )
            if np.isnan(curves).any():
                continue
            mean, std = curves.mean(axis=0), curves.std(axis=0)
            lines = {"mean": mean, "low": mean - std, "high": mean + std}
            for line, values in lines.items():
                for step, value in enumerate(values, start=1):
                    writer.add_scalar(f"folds_{tag}/{line}", value, step)
            layout[tag] = ["Margin", [f"folds_{tag}/{line}" for line in lines]]
        writer.add_custom_scalars({"mean ± std over folds": layout})
        for name, figure in figures.items():
            writer.add_figure(name, figure, close=False)
        # "." keeps the hyper-parameters in the run's own folder instead of a stray run below it.
        writer.add_hparams(hparams, metrics, run_name=".")


def plain(settings: dict, prefix: str = "") -> dict[str, bool | float | str]:
    """Nested settings as the flat ones TensorBoard takes: model.hidden_dim → 64.

    What is not set, or says only where code and data come from, is left out: a table of a sweep has a column for each.
    """
    flat: dict[str, bool | float | str] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= plain(value, f"{prefix}{key}.")
        elif isinstance(value, (bool, int, float, str)) and not key.startswith("_"):
            flat[f"{prefix}{key}"] = value
    return flat
