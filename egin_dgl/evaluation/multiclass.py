"""Metrics of multiclass classification of logits (B, classes) and labels (B,), in float64 and computed from the logits themselves.

torchmetrics, which `egin predict` uses for a running confusion matrix, is not used here: it returns float32, importing
it takes 0.5 to 2 s of every run, and the comment beside a metric names where its value is different. Every metric
equals scikit-learn's, with ties, saturated probabilities and absent classes.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

ECE_BINS = 15


def confusion(logits: Tensor, labels: Tensor) -> Tensor:
    """Counts, true class by predicted class: (classes, classes)."""
    # torchmetrics has the same counts; two lines are not worth its import.
    classes = logits.shape[1]
    pairs = labels * classes + logits.argmax(dim=1)
    return pairs.bincount(minlength=classes * classes).view(classes, classes)


def accuracy(logits: Tensor, labels: Tensor) -> float:
    # torchmetrics: the same, in float32.
    return float((logits.argmax(dim=1) == labels).double().mean())


def balanced_accuracy(logits: Tensor, labels: Tensor) -> float:
    """Mean recall of the classes that occur."""
    # torchmetrics also averages over classes that are predicted but do not occur.
    counts = confusion(logits, labels).double()
    true = counts.sum(dim=1)
    return float((counts.diag() / true)[true > 0].mean())


def f1_macro(logits: Tensor, labels: Tensor) -> float:
    """Mean of 2 TP / (2 TP + FP + FN) over the classes that occur or are predicted."""
    # torchmetrics: the same, in float32.
    counts = confusion(logits, labels).double()
    total = counts.sum(dim=0) + counts.sum(dim=1)
    return float((2 * counts.diag() / total)[total > 0].mean())


def mcc(logits: Tensor, labels: Tensor) -> float:
    """Matthews correlation coefficient; 0 where it is undefined, as for predicting one class always."""
    # torchmetrics returns 0.41 for predicting the majority class of 95 : 5.
    counts = confusion(logits, labels).double()
    true, predicted, n = counts.sum(dim=1), counts.sum(dim=0), counts.sum()
    covariance = counts.trace() * n - true @ predicted
    spread = ((n**2 - true @ true) * (n**2 - predicted @ predicted)).sqrt()
    return float(covariance / spread) if spread > 0 else 0.0


def auroc(logits: Tensor, labels: Tensor) -> float:
    """Area under the ROC curve, see `auroc_by_rank`."""
    # torchmetrics ranks by softmax or sigmoid, which ties saturated logits, and counts absent classes as 0.
    return one_vs_rest(auroc_by_rank, logits, labels)


def auroc_by_rank(rank: Tensor, positive: Tensor) -> Tensor:
    """(Σ ranks of the P positives − P(P+1)/2) / (P N), ties sharing their mean rank."""
    counts = rank.bincount().double()
    mean_ranks = (counts.cumsum(0) - (counts - 1) / 2)[rank]
    p, n = positive.sum(), (~positive).sum()
    return (mean_ranks[positive].sum() - p * (p + 1) / 2) / (p * n)


def average_precision(logits: Tensor, labels: Tensor) -> float:
    """Area under the precision-recall curve, see `average_precision_by_rank`."""
    # torchmetrics ranks by softmax, as for auroc.
    return one_vs_rest(average_precision_by_rank, logits, labels)


def average_precision_by_rank(rank: Tensor, positive: Tensor) -> Tensor:
    """Σ over thresholds of precision × gain in recall; graphs of equal rank pass a threshold together."""
    descending = rank.max() - rank
    hits = descending.bincount(positive.double())
    precision = hits.cumsum(0) / descending.bincount().cumsum(0)
    return (hits * precision).sum() / hits.sum()


def one_vs_rest(metric: Callable[[Tensor, Tensor], Tensor], logits: Tensor, labels: Tensor) -> float:
    """Mean of a ranking metric over the classes that occur; NaN if only one occurs or a logit is NaN.

    `metric` receives each graph's dense rank by margin, from 0 for the lowest, and whether it is of the class. With two
    classes the value is that of the second, the positive class.
    """
    present = labels.unique().tolist()
    if len(present) < 2 or logits.isnan().any():
        return math.nan
    classes = present[1:] if logits.shape[1] == 2 else present
    columns = margins(logits)[:, classes].T.contiguous()
    ranks = (column.unique(return_inverse=True)[1] for column in columns)
    values = [metric(rank, labels == c) for c, rank in zip(classes, ranks, strict=True)]
    return float(torch.stack(values).mean())


def margins(logits: Tensor) -> Tensor:
    """Log-odds of all classes, (B, classes): what `margin` returns for each, from one sort of every row.

    The sum without a logit is that of the logits sorted before it and of those after it, computed once for all graphs with
    the same logits in any order: vectorised functions may give two rows of equal numbers other last digits.
    """
    logits = logits.double()
    ordered = logits.sort(dim=1).values
    rows, row = ordered.unique(dim=0, return_inverse=True)
    before = pad(rows.logcumsumexp(dim=1)[:, :-1], (1, 0), value=-math.inf)
    after = pad(rows.flip(1).logcumsumexp(dim=1).flip(1)[:, 1:], (0, 1), value=-math.inf)
    return logits - torch.logaddexp(before, after)[row].gather(1, torch.searchsorted(ordered, logits))


def margin(logits: Tensor, c: int) -> Tensor:
    """Log-odds of class c, z_c − log Σ_{j≠c} exp z_j: ordered as its probabilities, and never saturated.

    The sum is taken in sorted order, so that graphs with the same other logits have equal margins.
    """
    others = torch.cat([logits[:, :c], logits[:, c + 1 :]], dim=1)
    return logits[:, c].double() - others.double().sort(dim=1).values.logsumexp(dim=1)


def log_loss(logits: Tensor, labels: Tensor) -> float:
    """Mean of −log p of the true class, in nats."""
    # torchmetrics has none.
    return float(-logits.double().log_softmax(dim=1)[range(len(labels)), labels].mean())


def brier(logits: Tensor, labels: Tensor) -> float:
    """Mean of Σ_c (p_c − [c is true])²; with two classes half of it, (p − y)² of the positive class."""
    # torchmetrics has none.
    truth = torch.nn.functional.one_hot(labels, logits.shape[1])
    squares = (logits.double().softmax(dim=1) - truth).square().sum(dim=1).mean()
    return float(squares / 2 if logits.shape[1] == 2 else squares)


def ece(logits: Tensor, labels: Tensor) -> float:
    """Expected calibration error, Σ_b |B_b|/n |accuracy(B_b) − confidence(B_b)|.

    Confidence is the probability of the predicted class; B_b are 15 bins of equal width, (lo, hi].
    """
    # torchmetrics takes logits that happen to lie in [0, 1] for probabilities.
    confidence, predicted = logits.double().softmax(dim=1).max(dim=1)
    edges = torch.arange(1, ECE_BINS, device=logits.device, dtype=torch.float64) / ECE_BINS
    gaps = torch.bucketize(confidence, edges).bincount((predicted == labels).double() - confidence)
    return float(gaps.abs().sum() / len(labels))
