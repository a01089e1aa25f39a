"""From the folds' results to summary.json: protocols, further metrics, and what the numbers can be held against."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.training.job import FoldJob, FoldResult
from egin_dgl.training.metrics import confusion, score
from egin_dgl.training.protocols import evaluate, headline


def summarize(dataset: GraphDataset, jobs: Sequence[FoldJob], results: Sequence[FoldResult], k: int) -> dict:
    """Accuracies are fractions, std is over folds with ddof 0; metrics are read at the headline's epochs."""
    protocols = evaluate([result.history for result in results])
    chosen = headline(protocols)
    scores = [score(*part) for part in test_parts(dataset, jobs, results, protocols[chosen].epochs)]
    return {
        "dataset": dataset.info.name,
        "folds": len(results),
        "k": k,
        "fold_numbers": [result.fold for result in results],
        "headline": chosen,
        "protocols": {name: result and result.to_dict() for name, result in protocols.items()},
        "metrics": {name: mean_std([fold[name] for fold in scores]) for name in scores[0]},
        "majority_accuracy": dataset.majority_accuracy,
    }


def confusion_counts(dataset, jobs, results) -> np.ndarray:
    """Over the test parts of all folds, at the headline's epochs: (classes, classes)."""
    protocols = evaluate([result.history for result in results])
    parts = test_parts(dataset, jobs, results, protocols[headline(protocols)].epochs)
    return sum(confusion(*part) for part in parts).numpy()


def test_parts(dataset, jobs, results, epochs) -> list[tuple[Tensor, Tensor]]:
    """Logits at the fold's epoch and labels, per fold."""
    return [
        (result.test_logits[epoch - 1], dataset.labels[torch.as_tensor(job.split.test)])
        for job, result, epoch in zip(jobs, results, epochs, strict=True)
    ]


def mean_std(values: Sequence[float]) -> dict[str, float | None]:
    """Over the folds where the metric is defined; null where it is in none."""
    defined = [value for value in values if value == value]
    if not defined:
        return {"mean": None, "std": None}
    return {"mean": float(np.mean(defined)), "std": float(np.std(defined))}
