"""A fold to train, as a job that can be sent to a worker process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.splits import Split
from egin_dgl.data.transform import Transform
from egin_dgl.evaluation.history import EpochRecord, FoldResult
from egin_dgl.models.estimators.sklearn_model import SklearnModel
from egin_dgl.models.model import GraphModel
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.parallel.ranks import ONE_RANK, Ranks

MakeModel = Callable[[DatasetInfo], GraphModel | SklearnModel]
OnEpoch = Callable[[int, EpochRecord], None]  # called with the fold and its record after each epoch


@dataclass(frozen=True)
class Recipe:
    """How folds are trained."""

    make_model: MakeModel
    make_optimizer: Callable[..., torch.optim.Optimizer]
    make_scheduler: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]
    options: TrainerOptions
    metadata: dict[str, object]  # saved with the weights, needed to load them
    transforms: Sequence[Callable[[GraphDataset, np.ndarray], Transform]] = ()  # fitted on the training set


@dataclass(frozen=True)
class FoldJob:
    """What a process needs, with the dataset, to train one fold."""

    fold: int
    seed: int
    split: Split
    folder: FoldDir
    train: "TrainFold"
    device: torch.device
    recipe: Recipe
    test_once: bool = False  # evaluate the test set only at the epoch selected on validation
    chosen: dict[str, object] | None = None  # settings selected by nested cross-validation, for the result
    ranks: Ranks = ONE_RANK  # the processes that train the fold


# fit_fold, fit_sklearn_fold or fit_nested_fold
TrainFold = Callable[[GraphDataset, FoldJob, OnEpoch], FoldResult]
