"""A fold as a piece of work that can be sent to a process, and what comes back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.folds import Split
from egin_dgl.data.transform import Transform
from egin_dgl.evaluation.history import EpochRecord, History
from egin_dgl.runs.fold_folder import save_progress
from egin_dgl.training.options import TrainerOptions

Report = Callable[[int, EpochRecord], None]  # called with the fold and its epoch just done


@dataclass(frozen=True)
class FoldJob:
    """All that a process needs, beside the dataset, to train one fold."""

    fold: int
    seed: int
    split: Split
    folder: Path
    run: Callable[[GraphDataset, "FoldJob", Report], "FoldResult"]  # trains a network, or fits an estimator
    make_model: Callable[[DatasetInfo], nn.Module]
    make_optimizer: Callable[..., torch.optim.Optimizer]
    make_scheduler: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]
    options: TrainerOptions
    device: torch.device
    metadata: dict  # saved with the weights, for those who load them
    transforms: Sequence[Callable[[GraphDataset, np.ndarray], Transform]] = ()  # fitted on the training part
    test_once: bool = False  # leave the test part alone but at the epoch that validation chose
    chosen: dict | None = None  # settings that an inner selection preferred, kept with the result


@dataclass(frozen=True)
class FoldResult:
    """The history and, for every epoch, the logits of the test part: (epochs, test graphs, classes).

    Of the validation part there are those of the kept model, at the epoch that it chose: (validation graphs, classes),
    for whoever judges its probabilities. None in folds that were finished before they were kept.
    """

    fold: int
    history: History
    test_logits: Tensor
    test_labels: Tensor
    parameters: int
    chosen: dict | None = None
    validation_logits: Tensor | None = None
    validation_labels: Tensor | None = None

    def save(self, path: Path) -> None:
        """Keep it in place of the state to resume from."""
        save_progress(
            path,
            self.history,
            list(self.test_logits),
            finished=True,
            test_labels=self.test_labels,
            parameters=self.parameters,
            chosen=self.chosen,
            validation_logits=self.validation_logits,
            validation_labels=self.validation_labels,
        )

    @classmethod
    def of_finished(cls, fold: int, progress: dict) -> "FoldResult":
        """What a fold that was finished before left behind."""
        logits = torch.stack(progress["test_logits"])
        names = ("test_labels", "parameters", "chosen", "validation_logits", "validation_labels")
        return cls(fold, progress["history"], logits, *map(progress.get, names))
