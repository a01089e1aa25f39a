"""Figures of a run: learning curves and the confusion matrix."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from egin_dgl.evaluation.history import History
from egin_dgl.evaluation.metrics import MAIN

SPLITS = {"train": ("train", "tab:blue"), "val": ("validation", "tab:orange"), "test": ("test", "tab:green")}
MAX_NAMES = 55  # class names that fit along an axis
MAX_COUNTS = 15  # classes up to which each cell shows its count


def curves_figure(histories: Sequence[History], title: str) -> Figure:
    """Loss and score by epoch, or by the penalty C: mean over folds ± one standard deviation."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    figure.suptitle(title)
    epochs = min(len(history) for history in histories)
    kernel = histories[0][0].C is not None
    steps = [record.C if kernel else record.epoch for record in histories[0][:epochs]]
    labels = {"loss": "cross-entropy of decision values" if kernel else "loss", MAIN.name: MAIN.name}
    for axes, (quantity, label) in zip(figure.subplots(1, 2), labels.items(), strict=True):
        for split, (name, color) in SPLITS.items():
            curves = [[getattr(r, f"{split}_{quantity}") for r in history[:epochs]] for history in histories]
            mean, std = np.mean(curves, axis=0), np.std(curves, axis=0)
            if np.isnan(mean).any():
                continue
            axes.plot(steps, mean, color=color, label=name, marker="o" if kernel else None)
            low = np.maximum(
                mean - std, mean / 10 if quantity == "loss" else -np.inf
            )  # a log axis has no zero
            axes.fill_between(steps, low, mean + std, color=color, alpha=0.15, linewidth=0)
        axes.set(xlabel="C" if kernel else "epoch", ylabel=label, xscale="log" if kernel else "linear")
        if quantity == "loss":
            axes.set_yscale("log")  # with sum readouts the first losses are a hundred times the last
        axes.grid(alpha=0.3)
        axes.legend()
    return figure


def confusion_figure(counts: np.ndarray, class_names: Sequence[str], title: str) -> Figure:
    """Confusion matrix: true classes in rows, predictions in columns, shaded by the fraction of the row."""
    size = max(4.0, min(12.0, 0.32 * len(counts) + 2))
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    axes = figure.subplots()
    fractions = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, shrink=0.8, label="fraction of the true class")
    axes.set(xlabel="predicted class", ylabel="true class", title=title)
    ticks = range(0, len(counts), -(-len(counts) // MAX_NAMES))  # every n-th name where all would overlap
    names = [class_names[number] for number in ticks]
    fontsize = 10 if len(counts) <= MAX_NAMES // 2 else 8
    axes.set_xticks(ticks, names, rotation=90 if len(counts) > MAX_COUNTS else 0, fontsize=fontsize)
    axes.set_yticks(ticks, names, fontsize=fontsize)
    if len(counts) <= MAX_COUNTS:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if fractions[row, column] > 0.5 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=color)
    return figure
