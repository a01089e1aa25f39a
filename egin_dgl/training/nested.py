"""Nested cross-validation of one outer fold: settings chosen without the test part, which is then read once."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.evaluation.history import History, best_on_validation
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.training.job import FoldJob, OnEpoch, Recipe
from egin_dgl.training.trainer import train_fold

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """One point of the grid: its settings, as the options that name them, and how a fold is trained with them."""

    settings: dict[str, object]
    recipe: Recipe


def train_nested_fold(
    dataset: GraphDataset, job: FoldJob, on_epoch: OnEpoch, candidates: Sequence[Candidate]
) -> FoldResult:
    """Train every candidate without the test part, then the one that validation prefers with it.

    The winner starts from the same seed as it did as a candidate, so it becomes the same model. Its history has test
    values at the chosen epoch only: the other protocols have nothing to be optimistic about.
    """
    unseen = replace(job.split, test=np.empty(0, dtype=np.int64))
    histories: list[History] = []
    done = 0  # epochs of earlier candidates, for the bar
    for number, candidate in enumerate(candidates):

        def passed_on(fold, record, before=done):
            on_epoch(fold, replace(record, epoch=before + record.epoch))

        inner = replace(job, folder=job.folder.candidate(number), split=unseen, recipe=candidate.recipe)
        histories.append(train_fold(dataset, inner, passed_on).history)
        done += inner.recipe.options.epochs
    winner = max(range(len(candidates)), key=lambda i: best_on_validation(histories[i]).validation_rank)
    chosen = candidates[winner]
    log.info("fold %d chose %s", job.fold, chosen.settings)
    outer = replace(job, test_once=True, chosen=chosen.settings, recipe=chosen.recipe)
    return train_fold(
        dataset, outer, lambda fold, record: on_epoch(fold, replace(record, epoch=done + record.epoch))
    )
