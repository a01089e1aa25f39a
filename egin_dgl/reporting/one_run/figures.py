"""Pictures of a run."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from egin_dgl.evaluation.history import History
from egin_dgl.evaluation.metrics import MAIN

PARTS = {"train": ("train", "tab:blue"), "val": ("validation", "tab:orange"), "test": ("test", "tab:green")}
MOST_NAMES = 55  # that fit beside each other
MOST_COUNTS = 15  # classes up to which a number fits into each cell


def curves_figure(histories: Sequence[History], title: str) -> Figure:
    """Loss and score by epoch, or by the penalty C: the mean over folds, and a band of one standard deviation."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    figure.suptitle(title)
    reached = min(len(history) for history in histories)
    kernel = histories[0][0].C is not None
    steps = [record.C if kernel else record.epoch for record in histories[0][:reached]]
    labels = {"loss": "cross-entropy of decision values" if kernel else "loss", MAIN.name: MAIN.name}
    for axes, (quantity, label) in zip(figure.subplots(1, 2), labels.items(), strict=True):
        for part, (name, color) in PARTS.items():
            curves = [[getattr(r, f"{part}_{quantity}") for r in history[:reached]] for history in histories]
            mean, std = np.mean(curves, axis=0), np.std(curves, axis=0)
            if np.isnan(mean).any():
                continue
            axes.plot(steps, mean, color=color, label=name, marker="o" if kernel else None)
            least = mean / 10 if quantity == "loss" else -np.inf  # a log axis has no zero
            low = np.maximum(mean - std, least)
            axes.fill_between(steps, low, mean + std, color=color, alpha=0.15, linewidth=0)
        axes.set(xlabel="C" if kernel else "epoch", ylabel=label, xscale="log" if kernel else "linear")
        if quantity == "loss":
            axes.set_yscale("log")  # sums over nodes start with losses a hundred times those they end with
        axes.grid(alpha=0.3)
        axes.legend()
    return figure


def confusion_figure(counts: np.ndarray, class_names: Sequence[str], title: str) -> Figure:
    """Rows are true classes, columns predictions; the shade is the share of the row."""
    size = max(4.0, min(12.0, 0.32 * len(counts) + 2))
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    axes = figure.subplots()
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, shrink=0.8, label="share of the true class")
    axes.set(xlabel="predicted class", ylabel="true class", title=title)
    # Beyond some fifty names, every second one, or third, and so on: those between would overlap.
    named = range(0, len(counts), -(-len(counts) // MOST_NAMES))
    points = 10 if len(counts) <= MOST_NAMES // 2 else 8
    names = [class_names[number] for number in named]
    axes.set_xticks(named, names, rotation=90 if len(counts) > MOST_COUNTS else 0, fontsize=points)
    axes.set_yticks(named, names, fontsize=points)
    axes.set_xticks(range(len(counts)), minor=True)
    axes.set_yticks(range(len(counts)), minor=True)
    if len(counts) <= MOST_COUNTS:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if share[row, column] > 0.5 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=color)
    return figure
