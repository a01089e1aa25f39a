"""Nested cross-validation of one outer fold: settings are selected on validation, the test set is evaluated once."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.evaluation.history import FoldResult, History, best_validation_record
from egin_dgl.training.job import FoldJob, OnEpoch, Recipe
from egin_dgl.training.trainer import fit_fold

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """One point of the grid: its settings by option name, and the recipe with these settings."""

    settings: dict[str, object]
    recipe: Recipe


def fit_nested_fold(
    dataset: GraphDataset, job: FoldJob, on_epoch: OnEpoch, candidates: Sequence[Candidate]
) -> FoldResult:
    """Train every candidate without the test set, then the best on validation with it.

    The winner is trained again from the same seed and becomes the same model. Its history has test values at the
    selected epoch only.
    """
    no_test = replace(job.split, test=np.empty(0, dtype=np.int64))
    histories: list[History] = []
    offset = 0  # epochs of earlier candidates, for the progress bar

    def shifted(fold, record):
        on_epoch(fold, replace(record, epoch=offset + record.epoch))

    for number, candidate in enumerate(candidates):
        inner = replace(job, folder=job.folder.candidate(number), split=no_test, recipe=candidate.recipe)
        histories.append(fit_fold(dataset, inner, shifted).history)
        offset += inner.recipe.options.epochs
    winner = max(range(len(candidates)), key=lambda i: best_validation_record(histories[i]).validation_rank)
    chosen = candidates[winner]
    log.info("fold %d selected %s", job.fold, chosen.settings)
    outer = replace(job, test_once=True, chosen=chosen.settings, recipe=chosen.recipe)
    return fit_fold(dataset, outer, shifted)
