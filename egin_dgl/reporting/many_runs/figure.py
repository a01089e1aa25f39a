"""A table of results as a figure: means with confidence intervals."""

import textwrap

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from egin_dgl.reporting.many_runs.table import ResultTable

MAX_PANELS = 4  # in a row


def results_figure(table: ResultTable) -> Figure:
    """Means with 95 % confidence intervals: a panel per column of the table, a line and a colour per row."""
    pivot, unit = table.pivot, table.unit
    across = min(MAX_PANELS, len(pivot.columns))
    down = -(-len(pivot.columns) // across)
    labels = [pivot.row_label(row) for row in pivot.rows]
    names = 0.085 * max(map(len, labels))
    size = (max(6.0, 0.6 + names + 2.6 * across), 1.3 + down * (0.75 + 0.24 * len(labels)))
    figure = Figure(figsize=size, layout="constrained")
    title = f"{pivot.subject or 'All runs'}: test {table.metric}, protocol {table.protocol_label}"
    figure.suptitle("\n".join(textwrap.wrap(title, int(11 * size[0]))), fontsize=11)
    palette = colormaps["tab10" if len(labels) <= 10 else "tab20"]
    panels = figure.subplots(down, across, squeeze=False, sharey=True, sharex=pivot.column_key != "dataset")
    marks: dict[str, Line2D] = {}
    for axes, column, header in zip(panels.flat, pivot.columns, pivot.column_headers, strict=False):
        for y, row in enumerate(pivot.rows):
            cell = table.cells.get((row, column))
            if cell is None or cell.score is None:
                continue
            color, mean = palette(y % palette.N), unit.factor * cell.score.mean
            if bounds := cell.group.interval(cell.score):
                axes.plot(unit.factor * np.array(bounds), [y, y], color=color, alpha=0.6, linewidth=1.8)
            face = color if cell.group.complete else "white"
            axes.plot(mean, y, "o", color=color, markerfacecolor=face, markersize=6)
            if not cell.group.complete:
                hollow = Line2D([], [], color="black", marker="o", markerfacecolor="white", linestyle="")
                marks["folds are missing"] = hollow
            if cell.published:
                (marks["published"],) = axes.plot(cell.published.mean, y, "x", color="black", markersize=5)
        axes.set_title(header, fontsize=10)
        axes.set_yticks(range(len(labels)), labels, fontsize=9)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(alpha=0.3)
    panels[0, 0].set_ylim(len(labels) - 0.4, -0.6)
    for axes in list(panels.flat)[len(pivot.columns) :]:
        axes.set_visible(False)
    lines = "; lines: 95 % confidence intervals of the mean" if table.has_spread else ", one split"
    figure.supxlabel(f"test {table.metric}{unit.remark}{lines}", fontsize=9)
    if marks:
        figure.legend(marks.values(), marks, loc="outside lower right", fontsize=8, frameon=False)
    return figure
