"""Pictures of a run, and of a table of runs."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from egin_dgl.evaluation.history import History
from egin_dgl.reporting.many_runs.results import ResultTable

PARTS = {"train": "tab:blue", "val": "tab:orange", "test": "tab:green"}
MOST_COUNTS = 15  # classes up to which a number fits into each cell
MOST_PANELS = 4  # side by side


def curves_figure(histories: Sequence[History], title: str) -> Figure:
    """Loss and accuracy by epoch, or by the penalty C: the mean over folds, and a band of one standard deviation."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    figure.suptitle(title)
    reached = min(len(history) for history in histories)
    kernel = histories[0][0].C is not None
    steps = [record.C if kernel else record.epoch for record in histories[0][:reached]]
    labels = {"loss": "cross-entropy of decision values" if kernel else "loss", "accuracy": "accuracy"}
    for axes, quantity in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        for part, color in PARTS.items():
            rows = [
                [getattr(record, f"{part}_{quantity}") for record in history[:reached]]
                for history in histories
            ]
            values = np.array(rows)
            if np.isnan(values).any():
                continue
            mean, std = values.mean(axis=0), values.std(axis=0)
            name = {"val": "validation"}.get(part, part)
            axes.plot(steps, mean, color=color, label=name, marker="o" if kernel else None)
            low = (
                np.maximum(mean - std, mean / 10) if quantity == "loss" else mean - std
            )  # a log axis has no zero
            axes.fill_between(steps, low, mean + std, color=color, alpha=0.15, linewidth=0)
        axes.set(xlabel="C" if kernel else "epoch", ylabel=labels[quantity])
        if kernel:
            axes.set_xscale("log")
        if quantity == "loss":
            axes.set_yscale("log")  # sums over nodes start with losses a hundred times those they end with
        axes.grid(alpha=0.3)
        axes.legend()
    return figure


def confusion_figure(counts: np.ndarray, class_names: Sequence[str], title: str) -> Figure:
    """Rows are true classes, columns predictions; the shade is the share of the row."""
    size = max(4.0, min(9.0, 0.32 * len(counts) + 2))
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    axes = figure.subplots()
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, shrink=0.8, label="share of the true class")
    axes.set(xlabel="predicted class", ylabel="true class", title=title)
    axes.set_xticks(range(len(counts)), class_names, rotation=90 if len(counts) > MOST_COUNTS else 0)
    axes.set_yticks(range(len(counts)), class_names)
    if len(counts) <= MOST_COUNTS:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if share[row, column] > 0.5 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=color)
    return figure


def results_figure(table: ResultTable) -> Figure:
    """Means with their 95 % intervals: a panel a column, a line and a colour a row."""
    layout, unit = table.layout, table.unit
    across = min(MOST_PANELS, len(layout.columns))
    down = -(-len(layout.columns) // across)
    labels = [layout.row_label(row) for row in layout.rows]
    names = 0.085 * max(map(len, labels))
    size = (max(6.0, 0.6 + names + 2.6 * across), 1.3 + down * (0.75 + 0.24 * len(labels)))
    figure = Figure(figsize=size, layout="constrained")
    title = f"{layout.subject or 'All runs'}: test {table.metric}, protocol {table.protocol_label}"
    figure.suptitle("\n".join(textwrap.wrap(title, int(11 * size[0]))), fontsize=11)
    palette = colormaps["tab10" if len(labels) <= 10 else "tab20"].colors
    panels = figure.subplots(down, across, squeeze=False, sharey=True, sharex=layout.column_key != "dataset")
    marks: dict[str, Line2D] = {}
    for axes, column, header in zip(panels.flat, layout.columns, layout.column_headers, strict=False):
        for place, row in enumerate(layout.rows):
            entry = table.entries.get((row, column))
            if entry is None or entry.score is None:
                continue
            color, mean = palette[place % len(palette)], unit.factor * entry.score.mean
            if bounds := entry.cell.interval(entry.score):
                axes.plot(
                    unit.factor * np.array(bounds), [place, place], color=color, alpha=0.6, linewidth=1.8
                )
            face = color if entry.counts else "white"
            axes.plot(mean, place, "o", color=color, markerfacecolor=face, markersize=6)
            if not entry.counts:
                marks["folds are missing"] = Line2D(
                    [], [], color="black", marker="o", markerfacecolor="white", linestyle=""
                )
            if entry.published:
                (marks["published"],) = axes.plot(
                    entry.published.mean, place, "x", color="black", markersize=5, linestyle=""
                )
        axes.set_title(header, fontsize=10)
        axes.set_yticks(range(len(labels)), labels, fontsize=9)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(alpha=0.3)
    panels[0, 0].set_ylim(len(labels) - 0.4, -0.6)
    for axes in list(panels.flat)[len(layout.columns) :]:
        axes.set_visible(False)
    figure.supxlabel(f"test {table.metric}{unit.remark}; lines: 95 % intervals of the mean", fontsize=9)
    if marks:
        figure.legend(marks.values(), marks, loc="outside lower right", fontsize=8, frameon=False)
    return figure
