"""The summary of a run, protocols and metrics over all folds, and its predictions of test graphs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from egin_dgl.data.splits import Split
from egin_dgl.evaluation.calibration import held_out_temperatures
from egin_dgl.evaluation.history import FoldResult, best_validation_record, selected_record
from egin_dgl.evaluation.metrics import Metrics, compute_all_metrics
from egin_dgl.evaluation.multiclass import confusion
from egin_dgl.evaluation.protocols import ProtocolResult, apply_protocols, has_probabilities, headline


@dataclass(frozen=True)
class Prediction:
    """A test graph, predicted by a fold that has it in its test set."""

    graph: int
    fold: int
    label: Tensor  # a class (), or (T,) with NaN where missing
    logits: Tensor  # (outputs,), or values of a regression
    temperature: float | None  # None: not calibrated
    epoch: int  # of a kernel machine, the row of its history
    chosen: str  # how the epoch was selected: "validation", "last" or "middle C"


def summarize(
    results: Sequence[FoldResult],
    metrics: Metrics,
    k: int,
    validation: bool,
    target_names: Sequence[str] = (),
) -> dict:
    """Summary of all folds. Scores are values of the monitored metric, std is over folds with ddof 0, metrics are of the headline's epochs.

    Log loss, Brier score and calibration error are null for kernel machines, whose decision values are not
    log-probabilities. Several targets have metrics of their own in `targets`. `validation_score`, the mean over folds of the best monitored score, is what a search optimizes.
    """
    histories = [result.history for result in results]
    protocols = apply_protocols(histories)
    ratio = test_to_train(k, validation)
    outputs = headline_logits(results, protocols)
    probable = all(map(has_probabilities, histories))
    defined = {name: one for name, one in metrics.items() if probable or not one.needs_probabilities}
    values = [
        dict.fromkeys(metrics, math.nan) | compute_all_metrics(defined, predicted, labels)
        for predicted, labels in outputs
    ]
    best = [best_validation_record(history).monitor_score for history in histories] if validation else []
    summary = {
        "folds": len(results),
        "k": k,
        "fold_numbers": [result.fold for result in results],
        "headline": headline(protocols),
        "protocols": {name: result and result.to_dict(ratio) for name, result in protocols.items()},
        "metric": histories[0][0].metric,
        "metrics": {name: mean_std([fold[name] for fold in values]) for name in metrics},
        "validation_score": mean_std(best)["mean"],
    }
    if len(target_names) > 1:
        summary["targets"] = metrics_by_target(outputs, defined, target_names)
    if any(result.chosen for result in results):
        summary["chosen"] = [result.chosen for result in results]
    return summary


def metrics_by_target(
    outputs: Sequence[tuple[Tensor, Tensor]], metrics: Metrics, target_names: Sequence[str]
) -> dict[str, dict[str, dict]]:
    """Mean and std over folds of each metric of each target, by the names of target and metric."""
    values = {name: [metric.per_target(*pair) for pair in outputs] for name, metric in metrics.items()}
    return {
        target: {name: mean_std([fold[i] for fold in folds]) for name, folds in values.items()}
        for i, target in enumerate(target_names)
    }


def test_to_train(k: int, validation: bool) -> float:
    """Size of a test set relative to its training set."""
    return 1 / (k - 1 - validation)


def confusion_counts(results: Sequence[FoldResult]) -> np.ndarray:
    """Confusion matrix over the test sets of all folds at the headline's epochs: (classes, classes)."""
    pairs = headline_logits(results, apply_protocols([result.history for result in results]))
    return torch.stack([confusion(*pair) for pair in pairs]).sum(dim=0).numpy()


def headline_logits(
    results: Sequence[FoldResult], protocols: dict[str, ProtocolResult | None]
) -> list[tuple[Tensor, Tensor]]:
    """Test logits at the headline's epoch and labels, per fold."""
    protocol = protocols[headline(protocols)]
    if protocol is None or protocol.epochs is None:
        raise ValueError("no protocol can be applied: the test set was not evaluated at any epoch")
    pairs = zip(results, protocol.epochs, strict=True)
    return [(result.test_logits[epoch - 1], result.test_labels) for result, epoch in pairs]


def mean_std(values: Sequence[float]) -> dict:
    """Mean and std over the folds where the metric is defined; null if it is defined in none."""
    defined = [value for value in values if value == value]
    if not defined:
        return {"mean": None, "std": None, "per_fold": None}
    per_fold = [None if value != value else value for value in values]
    return {"mean": float(np.mean(defined)), "std": float(np.std(defined)), "per_fold": per_fold}


def test_predictions(results: Sequence[FoldResult], splits: Mapping[int, Split]) -> Iterator[Prediction]:
    """One prediction per test graph and fold, by the model that the fold saved."""
    for result, temperature in zip(results, held_out_temperatures(results, splits), strict=True):
        record = selected_record(result.history)
        how = "validation" if record.has_validation else ("last" if record.C is None else "middle C")
        rows = zip(
            splits[result.fold].test, result.test_labels, result.test_logits[record.epoch - 1], strict=True
        )
        for graph, label, logits in rows:
            yield Prediction(int(graph), result.fold, label, logits, temperature, record.epoch, how)
