"""From the folds' results to summary.json: protocols, further metrics, and what the numbers can be held against."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from egin_dgl.evaluation.calibration import calibration_of
from egin_dgl.evaluation.history import best_on_validation
from egin_dgl.evaluation.metrics import LOSSES, confusion, score
from egin_dgl.evaluation.protocols import ProtocolResult, has_epochs, headline, read_by_all
from egin_dgl.evaluation.result import FoldResult


def summarize(results: Sequence[FoldResult], k: int, validation: bool) -> dict:
    """Accuracies are fractions, std is over folds with ddof 0; metrics are read at the headline's epochs.

    The decision values of a kernel machine are no log-probabilities: its log loss, Brier score and calibration error
    are null.
    `calibration` says what the temperatures of the folds do to the probabilities of their test graphs.
    `validation_score` is what a search over settings may look at: the mean, over folds, of the best validation score.
    """
    histories = [result.history for result in results]
    protocols = read_by_all(histories)
    chosen = headline(protocols)
    ratio = test_to_train(k, validation)
    scores = [score(*part) for part in test_parts(results, headline_epochs(protocols))]
    if not all(map(has_epochs, histories)):
        scores = [fold | dict.fromkeys(LOSSES, math.nan) for fold in scores]
    best = [best_on_validation(history).chosen_by for history in histories] if validation else []
    summary = {
        "folds": len(results),
        "k": k,
        "fold_numbers": [result.fold for result in results],
        "headline": chosen,
        "protocols": {name: result and result.to_dict(ratio) for name, result in protocols.items()},
        "metrics": {name: mean_std([fold[name] for fold in scores]) for name in scores[0]},
        "calibration": calibration_of(results),
        "validation_score": mean_std(best)["mean"],
    }
    if any(result.chosen for result in results):
        summary["chosen"] = [result.chosen for result in results]
    return summary


def test_to_train(k: int, validation: bool) -> float:
    """The size of a test part relative to its training part."""
    return 1 / (k - 1 - validation)


def confusion_counts(results: Sequence[FoldResult]) -> np.ndarray:
    """Over the test parts of all folds, at the headline's epochs: (classes, classes)."""
    protocols = read_by_all([result.history for result in results])
    parts = test_parts(results, headline_epochs(protocols))
    return torch.stack([confusion(*part) for part in parts]).sum(dim=0).numpy()


def headline_epochs(protocols: dict[str, ProtocolResult | None]) -> Sequence[int]:
    """The epoch of each fold that the headline reads."""
    chosen = protocols[headline(protocols)]
    if chosen is None or chosen.epochs is None:
        raise ValueError("no test part was read at any epoch that a protocol could choose")
    return chosen.epochs


def test_parts(results: Sequence[FoldResult], epochs: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Logits at the fold's epoch and labels, per fold."""
    return [
        (result.test_logits[epoch - 1], result.test_labels)
        for result, epoch in zip(results, epochs, strict=True)
    ]


def mean_std(values: Sequence[float]) -> dict:
    """Over the folds where the metric is defined; null where it is in none."""
    defined = [value for value in values if value == value]
    if not defined:
        return {"mean": None, "std": None, "per_fold": None}
    per_fold = [None if value != value else value for value in values]
    return {"mean": float(np.mean(defined)), "std": float(np.std(defined)), "per_fold": per_fold}
