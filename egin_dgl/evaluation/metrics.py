"""What a set of logits is worth: its answers, its ranking, its probabilities. (B, classes), (B,) -> a number.

All in float64 and from the logits themselves: a float32 softmax gives every margin above 17 the same probability, so
that a ranking by it ties what the model told apart, and torchmetrics ranks by a sigmoid. Counts are made by hand as well: to
load torchmetrics would take half a second or more of every run.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

BINS = 15  # of the expected calibration error


def accuracy(logits: Tensor, labels: Tensor) -> float:
    return float((logits.argmax(dim=1) == labels).double().mean())


def balanced_accuracy(logits: Tensor, labels: Tensor) -> float:
    """Mean recall of the classes that occur."""
    counts = confusion(logits, labels).double()
    true = counts.sum(dim=1)
    return float((counts.diag() / true)[true > 0].mean())


def f1_macro(logits: Tensor, labels: Tensor) -> float:
    """Mean over the classes that occur or are predicted of 2 TP / (2 TP + FP + FN)."""
    counts = confusion(logits, labels).double()
    either = counts.sum(dim=0) + counts.sum(dim=1)
    return float((2 * counts.diag() / either)[either > 0].mean())


def mcc(logits: Tensor, labels: Tensor) -> float:
    """Matthews' correlation, from counts; 0 where it is not defined, as for answering one class always.

    By hand, as torchmetrics gives 0.41 for answering the majority class of 95 : 5, where there is no correlation.
    """
    counts = confusion(logits, labels).double()
    true, predicted, n = counts.sum(dim=1), counts.sum(dim=0), counts.sum()
    covariance = counts.trace() * n - true @ predicted
    spread = ((n**2 - true @ true) * (n**2 - predicted @ predicted)).sqrt()
    return float(covariance / spread) if spread > 0 else 0.0


def auroc(logits: Tensor, labels: Tensor) -> float:
    """The share of pairs, one graph of the class and one of the rest, in which the first ranks higher; a tie is half.

    By rank sums (Mann & Whitney): (Σ rank of the P positives − P(P+1)/2) / (P N), equals sharing their mean rank.
    """

    def of_class(place: Tensor, positive: Tensor) -> Tensor:
        counts = place.bincount().double()
        ranks = (counts.cumsum(0) - (counts - 1) / 2)[place]
        p, n = positive.sum(), (~positive).sum()
        return (ranks[positive].sum() - p * (p + 1) / 2) / (p * n)

    return one_against_rest(of_class, logits, labels)


def average_precision(logits: Tensor, labels: Tensor) -> float:
    """Σ over thresholds of precision × gain in recall; graphs of equal rank pass a threshold together."""

    def of_class(place: Tensor, positive: Tensor) -> Tensor:
        from_the_top = place.max() - place
        hits = from_the_top.bincount(positive.double())
        precision = hits.cumsum(0) / from_the_top.bincount().cumsum(0)
        return (hits * precision).sum() / hits.sum()

    return one_against_rest(of_class, logits, labels)


def one_against_rest(metric: Callable[[Tensor, Tensor], Tensor], logits: Tensor, labels: Tensor) -> float:
    """Mean of a metric of ranks over the classes that occur; NaN where only one does, or logits are not numbers.

    `metric` gets each graph's place by margin, from 0 for the lowest, equal margins at the same place. Of two classes
    the value is that of the second, the positive one, as chemists report it; for AUROC both are equal.
    """
    present = labels.unique().tolist()
    if len(present) < 2 or logits.isnan().any():
        return float("nan")
    classes = present[1:] if logits.shape[1] == 2 else present
    places = [margin(logits, c).unique(return_inverse=True)[1] for c in classes]
    values = [metric(place, labels == c) for c, place in zip(classes, places, strict=True)]
    return float(torch.stack(values).mean())


def margin(logits: Tensor, c: int) -> Tensor:
    """z_c − log Σ_{j≠c} exp z_j, the log-odds of class c: the order of its probabilities, never saturated.

    The sum is taken in the order of size, so that graphs whose other logits are the same ones, of whichever class, are equal.
    """
    others = torch.cat([logits[:, :c], logits[:, c + 1 :]], dim=1)
    return logits[:, c].double() - others.double().sort(dim=1).values.logsumexp(dim=1)


def log_loss(logits: Tensor, labels: Tensor) -> float:
    """Mean of −log p of the true class, in nats."""
    return float(-logits.double().log_softmax(dim=1)[range(len(labels)), labels].mean())


def brier(logits: Tensor, labels: Tensor) -> float:
    """Mean of Σ_c (p_c − [c is true])²; of two classes half of it, (p − y)² of the second, as it is usually told."""
    truth = torch.nn.functional.one_hot(labels, logits.shape[1])
    squares = (logits.double().softmax(dim=1) - truth).square().sum(dim=1).mean()
    return float(squares / 2 if logits.shape[1] == 2 else squares)


def ece(logits: Tensor, labels: Tensor) -> float:
    """Expected calibration error: Σ_b |B_b|/n |accuracy(B_b) − confidence(B_b)|.

    The confidence of a graph is the probability of the class it is given; B_b are 15 bins of equal width, (lo, hi].
    """
    confidence, answer = logits.double().softmax(dim=1).max(dim=1)
    edges = torch.arange(1, BINS, device=logits.device, dtype=torch.float64) / BINS
    gaps = torch.bucketize(confidence, edges).bincount((answer == labels).double() - confidence)
    return float(gaps.abs().sum() / len(labels))


@dataclass(frozen=True)
class Metric:
    """A number with a name and a direction."""

    name: str
    of: Callable[[Tensor, Tensor], float]
    is_loss: bool = False  # smaller is better; it reads logits as log-probabilities

    def __call__(self, logits: Tensor, labels: Tensor) -> float:
        """NaN for an empty part, or where it is not defined."""
        return self.of(logits, labels) if len(labels) else math.nan

    def best(self, values: Iterable[float]) -> float:
        return min(values) if self.is_loss else max(values)


SCORES = (accuracy, balanced_accuracy, f1_macro, mcc, auroc, average_precision)
METRICS = {of.__name__: Metric(of.__name__, of) for of in SCORES}
METRICS |= {of.__name__: Metric(of.__name__, of, is_loss=True) for of in (log_loss, brier, ece)}
LOSSES = tuple(name for name, metric in METRICS.items() if metric.is_loss)
MAIN = METRICS["accuracy"]  # the score: what histories keep of every epoch and protocols read


def score(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """All metrics, NaN where one is not defined."""
    return {name: metric(logits, labels) for name, metric in METRICS.items()}


def confusion(logits: Tensor, labels: Tensor) -> Tensor:
    """Counts, true class by predicted class: (classes, classes)."""
    classes = logits.shape[1]
    pairs = labels * classes + logits.argmax(dim=1)
    return pairs.bincount(minlength=classes * classes).view(classes, classes)
