"""Pictures of the predictions of a run for its test graphs: probabilities of classes and labels, values of a regression."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from egin_dgl.reporting.one_run.figures import percent_axis

MAX_CURVES = 12  # with more classes or targets: their mean and spread
MAX_PANELS = 12  # targets of a parity plot
BINS = 10  # of a reliability diagram, with equal numbers of predictions
LEVEL = 0.9  # of the band around the diagonal of a parity plot
GRID = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class BinaryTarget:
    """One class against the rest, or one label: probabilities (n,) and whether it is true (n,), where this is known."""

    name: str
    probability: np.ndarray
    truth: np.ndarray


def binary_targets(probabilities: Tensor, labels: Tensor, names: Sequence[str]) -> list[BinaryTarget]:
    """The targets with graphs of both kinds; of two classes only the second, the positive one."""
    found = []
    for i in range(1 if labels.ndim == 1 and len(names) == 2 else 0, len(names)):
        truth = labels == i if labels.ndim == 1 else labels[:, i] == 1
        known = labels >= 0 if labels.ndim == 1 else ~labels[:, i].isnan()
        if 0 < truth[known].sum() < known.sum():
            found.append(BinaryTarget(names[i], probabilities[known, i].numpy(), truth[known].numpy()))
    return found


def ranked(target: BinaryTarget) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of true and of false graphs at or above each threshold, from the highest; equal probabilities share one."""
    order = np.argsort(-target.probability, kind="stable")
    hits, falls = np.cumsum(target.truth[order]), np.cumsum(~target.truth[order])
    ends = np.append(np.flatnonzero(np.diff(target.probability[order])), len(order) - 1)
    return hits[ends], falls[ends]


def roc_curve(target: BinaryTarget) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates by threshold, from (0, 0) to (1, 1)."""
    hits, falls = ranked(target)
    return np.append(0, falls / falls[-1]), np.append(0, hits / hits[-1])


def precision_recall_curve(target: BinaryTarget) -> tuple[np.ndarray, np.ndarray]:
    """Recall and precision by threshold, from recall 0."""
    hits, falls = ranked(target)
    precision = hits / (hits + falls)
    return np.append(0, hits / hits[-1]), np.append(precision[0], precision)


def probabilities_figure(
    scaled: Tensor, raw: Tensor, labels: Tensor, names: Sequence[str], calibration: str, title: str
) -> Figure:
    """ROC curve, precision-recall curve and reliability diagram, all test graphs pooled.

    Args:
        scaled: probabilities (n, classes) or (n, targets).
        raw: those before calibration, drawn where they differ.
        labels: as in `GraphDataset`.
        names: of classes or targets.
        calibration: what to call `scaled`, such as "calibrated".
    """
    figure = Figure(figsize=(13, 4.3), layout="compressed")
    figure.suptitle(title)
    roc, precision, reliability = figure.subplots(1, 3)
    targets = binary_targets(scaled, labels, names)
    palette = colormaps["tab10" if len(targets) <= 10 else "tab20"]
    for axes, curve in ((roc, roc_curve), (precision, precision_recall_curve)):
        points = [curve(target) for target in targets]
        if len(points) > MAX_CURVES:
            curves = np.array([np.interp(GRID, x, y) for x, y in points])
            low, high = np.quantile(curves, (0.1, 0.9), axis=0)
            axes.fill_between(GRID, low, high, alpha=0.2, label="80 % of the curves")
            axes.plot(GRID, curves.mean(axis=0), label=f"mean of {len(points)} curves")
            axes.legend(fontsize=8, loc="lower right" if axes is roc else "lower left")
            continue
        for i, (target, (x, y)) in enumerate(zip(targets, points, strict=True)):
            label = f"{textwrap.shorten(target.name, 22)} ({target.truth.sum():,} of {len(target.truth):,})"
            axes.plot(x, y, color=palette(i % palette.N), linewidth=1.3, label=label)
    roc.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1)
    roc.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC")
    precision.set(xlabel="recall", ylabel="precision", title="precision–recall")
    if len(targets) == 1:
        roc.legend(fontsize=8, loc="lower right", title="positive")
    elif len(targets) <= MAX_CURVES:
        handles = roc.get_legend_handles_labels()
        figure.legend(*handles, loc="outside right center", fontsize=8, title="positive")
    draw_reliability(reliability, scaled, raw, labels, calibration)
    for axes in (roc, precision, reliability):
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):
            percent_axis(axis)
        axes.grid(alpha=0.3)
    return figure


def draw_reliability(axes: Axes, scaled: Tensor, raw: Tensor, labels: Tensor, calibration: str) -> None:
    """Observed frequency by predicted probability, with 95 % intervals, before and after calibration.

    Of two classes the positive one counts, of more the predicted class, of labels all of them together.
    """
    axes.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1)
    styles = [(calibration, scaled, "tab:blue", "o-")]
    if not torch.equal(scaled, raw):
        styles.append(("before", raw, "tab:orange", "x--"))
    for label, probabilities, color, style in styles:
        predicted, correct = confidences(probabilities, labels)
        order, bins = np.argsort(predicted, kind="stable"), max(1, min(BINS, len(predicted) // 10))
        parts = [part for part in np.array_split(order, bins) if len(part)]
        x, y = (np.array([values[part].mean() for part in parts]) for values in (predicted, correct))
        spread = 1.96 * np.sqrt(y * (1 - y) / np.array([len(part) for part in parts]))
        spread = np.stack([np.minimum(spread, y), np.minimum(spread, 1 - y)])
        if label != "before":
            axes.errorbar(x, y, spread, color=color, fmt="none", elinewidth=1, alpha=0.5)
        axes.plot(x, y, style, color=color, markersize=4, linewidth=1.2, label=label)
    axes.legend(fontsize=8, loc="upper left")
    of = "predicted class" if labels.ndim == 1 and scaled.shape[1] > 2 else "positive class"
    axes.set(xlabel=f"probability of the {of}", ylabel="observed frequency", title="reliability")


def confidences(probabilities: Tensor, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of events and whether they happened, as in `draw_reliability`."""
    if labels.ndim == 2:
        known = ~labels.isnan()
        return probabilities[known].numpy(), labels[known].double().numpy()
    if probabilities.shape[1] == 2:
        return probabilities[:, 1].numpy(), (labels == 1).double().numpy()
    confidence, predicted = probabilities.max(dim=1)
    return confidence.numpy(), (predicted == labels).double().numpy()


def parity_figure(values: Tensor, labels: Tensor, names: Sequence[str], title: str) -> Figure:
    """Predicted against true values of each target, and the band ŷ ± q that holds 90 % of the true ones.

    q is the 90 % quantile of |ŷ − y| over these graphs, which the models that predict them have not seen.
    """
    shown = list(names)[:MAX_PANELS]
    across = min(4, len(shown))
    down = -(-len(shown) // across)
    side = 5.0 if len(shown) == 1 else 3.2
    figure = Figure(figsize=(across * side + 0.3, down * side + 0.6), layout="constrained")
    more = f", the first {len(shown)} of {len(names)} targets" if len(names) > len(shown) else ""
    figure.suptitle("\n".join(textwrap.wrap(title + more, int(12 * across * side))), fontsize=10)
    panels = figure.subplots(down, across, squeeze=False)
    for axes, name, predicted, truth in zip(panels.flat, shown, values.T, labels.T, strict=False):
        known = ~truth.isnan()
        draw_parity(axes, name, predicted[known].numpy(), truth[known].double().numpy())
    for axes in list(panels.flat)[len(shown) :]:
        axes.set_visible(False)
    return figure


def draw_parity(axes: Axes, name: str, predicted: np.ndarray, truth: np.ndarray) -> None:
    axes.set_title(textwrap.shorten(name, 40), fontsize=10)
    axes.set(xlabel="true", ylabel="predicted")
    axes.grid(alpha=0.3)
    if not len(truth):
        return
    low, high = min(truth.min(), predicted.min()), max(truth.max(), predicted.max())
    margin = 0.04 * (high - low) or 1.0
    ends = np.array([low - margin, high + margin])
    width = np.quantile(np.abs(predicted - truth), LEVEL)
    axes.fill_between(
        ends,
        ends - width,
        ends + width,
        color="tab:orange",
        alpha=0.15,
        linewidth=0,
        label=f"{LEVEL:.0%} within ± {width:.3g}",
    )
    axes.plot(ends, ends, color="0.4", linewidth=1)
    many = len(truth) > 2000  # as an image: an SVG of so many circles is slow to show
    size, alpha = (4, 0.3) if many else (9, 0.6)
    axes.scatter(truth, predicted, s=size, alpha=alpha, linewidth=0, color="tab:blue", rasterized=many)
    axes.set(xlim=ends, ylim=ends, aspect="equal")
    axes.legend(fontsize=8, loc="upper left")
