"""A table of runs as a picture: means with their intervals."""

import textwrap

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from egin_dgl.reporting.many_runs.table import ResultTable

MOST_PANELS = 4  # side by side


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
    palette = colormaps["tab10" if len(labels) <= 10 else "tab20"]
    panels = figure.subplots(down, across, squeeze=False, sharey=True, sharex=layout.column_key != "dataset")
    marks: dict[str, Line2D] = {}
    for axes, column, header in zip(panels.flat, layout.columns, layout.column_headers, strict=False):
        for place, row in enumerate(layout.rows):
            entry = table.entries.get((row, column))
            if entry is None or entry.score is None:
                continue
            color, mean = palette(place % palette.N), unit.factor * entry.score.mean
            if bounds := entry.cell.interval(entry.score):
                ends = unit.factor * np.array(bounds)
                axes.plot(ends, [place, place], color=color, alpha=0.6, linewidth=1.8)
            face = color if entry.cell.complete else "white"
            axes.plot(mean, place, "o", color=color, markerfacecolor=face, markersize=6)
            if not entry.cell.complete:
                hollow = Line2D([], [], color="black", marker="o", markerfacecolor="white", linestyle="")
                marks["folds are missing"] = hollow
            if entry.published:
                at = entry.published.mean
                (marks["published"],) = axes.plot(at, place, "x", color="black", markersize=5, linestyle="")
        axes.set_title(header, fontsize=10)
        axes.set_yticks(range(len(labels)), labels, fontsize=9)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(alpha=0.3)
    panels[0, 0].set_ylim(len(labels) - 0.4, -0.6)
    for axes in list(panels.flat)[len(layout.columns) :]:
        axes.set_visible(False)
    lines = "; lines: 95 % intervals of the mean" if table.has_spread else ", one split"
    figure.supxlabel(f"test {table.metric}{unit.remark}{lines}", fontsize=9)
    if marks:
        figure.legend(marks.values(), marks, loc="outside lower right", fontsize=8, frameon=False)
    return figure
