"""Pictures of a run: its curves by epoch, and the confusion matrix of its classes."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from egin_dgl.evaluation.history import History
from egin_dgl.reporting.formatting import PERCENT, unit_of

SPLITS = {
    "train": ("training", "tab:blue"),
    "val": ("validation", "tab:orange"),
    "test": ("test", "tab:green"),
}
MAX_NAMES = 55  # class names that fit along an axis
MAX_COUNTS = 15  # classes up to which each cell shows its count


def curves_figure(
    histories: Sequence[History], title: str, settings: Mapping, chosen: Sequence[float] = ()
) -> Figure:
    """Loss and score by epoch, or by the penalty C: mean over folds ± one standard deviation.

    `chosen` are the epochs, or values of C, of the folds by the headline protocol.
    """
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    figure.suptitle(title)
    epochs = min(len(history) for history in histories)
    kernel, metric = histories[0][0].C is not None, histories[0][0].metric
    steps = [record.C if kernel else record.epoch for record in histories[0][:epochs]]
    unit = unit_of(metric)
    labels = {
        "loss": "loss of decision values" if kernel else "loss",
        "score": metric if unit is PERCENT else f"{metric}{unit.remark}",
    }
    for axes, (quantity, label) in zip(figure.subplots(1, 2), labels.items(), strict=True):
        for split, (name, color) in SPLITS.items():
            curves = [[getattr(r, f"{split}_{quantity}") for r in history[:epochs]] for history in histories]
            mean, std = np.mean(curves, axis=0), np.std(curves, axis=0)
            if np.isnan(mean).any():
                continue
            axes.plot(steps, mean, color=color, label=name, marker="o" if kernel or epochs == 1 else None)
            low = (
                np.maximum(mean - std, mean / 10) if quantity == "loss" else mean - std
            )  # a log axis has no zero
            axes.fill_between(steps, low, mean + std, color=color, alpha=0.15, linewidth=0)
        axes.set(xlabel="C" if kernel else "epoch", ylabel=label, xscale="log" if kernel else "linear")
        mark_chosen(axes, chosen, "C" if kernel else "epoch")
        if quantity == "loss":
            log_axis(axes)  # with sum readouts the first losses are a hundred times the last
        elif unit is PERCENT:
            percent_axis(axes.yaxis)
        if not kernel:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=9)
    if not kernel:
        figure.supxlabel(training_note(settings), fontsize=8, color="0.3")
    return figure


def mark_chosen(axes: Axes, chosen: Sequence[float], name: str) -> None:
    """A line at the median choice, and a mark on the axis for each fold."""
    if not chosen:
        return
    text = f"chosen {name}" if len(set(chosen)) == 1 else f"chosen {name}s and their median"
    axes.axvline(float(np.median(chosen)), color="0.3", linestyle="--", linewidth=1, label=text)
    if len(set(chosen)) > 1:
        marks = axes.get_xaxis_transform()  # x in data, y from 0 to 1
        axes.plot(chosen, np.full(len(chosen), 0.03), "|", color="0.3", markersize=11, transform=marks)


def percent_axis(axis: Axis) -> None:
    """Fractions in %, with as many decimals as they need."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.6g} %"))


def log_axis(axes: Axes) -> None:
    """A logarithmic y axis with ticks at 1, 2 and 5, or only at powers of ten where these are many, in plain numbers."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,), numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def training_note(settings: Mapping) -> str:
    """Why training scores may be below those of validation."""
    model, trainer = settings.get("model", {}), settings.get("trainer", {})
    reasons = ["while the weights change"]
    if model.get("mlp_dropout") or model.get("dropout") not in (None, 0, "auto"):
        reasons.append("with dropout")
    elif model.get("dropout") == "auto":
        reasons.append("with dropout (unless the target is a number)")
    if trainer.get("ema_decay") is not None:
        reasons.append("without EMA weights")
    return f"training curves are of the training steps, {' and '.join(reasons)}, and may be worse than the others"


def confusion_figure(counts: np.ndarray, class_names: Sequence[str], title: str) -> Figure:
    """Confusion matrix: true classes in rows, predictions in columns, shaded by the fraction of the row."""
    size = max(4.0, min(12.0, 0.32 * len(counts) + 2))
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    axes = figure.subplots()
    fractions = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, label="share of the true class")
    percent_axis(bar.ax.yaxis)
    figure.suptitle("\n".join(textwrap.wrap(title, int(11 * size))), fontsize=11)
    axes.set(xlabel="predicted class", ylabel="true class")
    ticks = range(0, len(counts), -(-len(counts) // MAX_NAMES))  # every n-th name where all would overlap
    names = [class_names[number] for number in ticks]
    fontsize = 10 if len(counts) <= MAX_NAMES // 2 else 8
    long = len(counts) > MAX_COUNTS or max(map(len, names)) > 40 / len(names)
    axes.set_xticks(ticks, names, rotation=90 if long else 0, fontsize=fontsize)
    axes.set_yticks(ticks, names, fontsize=fontsize)
    if len(counts) <= MAX_COUNTS:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if fractions[row, column] > 0.5 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=color)
    return figure
