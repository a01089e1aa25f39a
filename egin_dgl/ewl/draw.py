"""A figure of one graph, one panel for each depth: node colours by refinement, edge colours by label."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.colors import TABLEAU_COLORS, hsv_to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from egin_dgl.errors import DataError
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.ewl.labels import label_values, rank_labels
from egin_dgl.ewl.refinement import Refinement, refine_at_most
from egin_dgl.files import atomic_path

MAX_LEGEND_ENTRIES = 12
EDGE_COLORS = list(TABLEAU_COLORS)


def draw_refinement(
    graph: object,
    path: str | Path,
    method: str = "e-wl",
    depth: int = 3,
    node_names: Sequence[str] | None = None,
    edge_names: Sequence[str] | None = None,
    seed: int = 0,
    title: str | None = None,
    attributes: bool = True,
) -> Refinement:
    """Write a PNG with one panel for each depth 0..depth.

    Args:
        graph: A graph that `as_graph_set` reads.
        path: The PNG file.
        method, depth, attributes: See `refine`.
        node_names, edge_names: Names of the columns of one-hot labels, for the legend.
        seed: Seed of the layout.
        title: Title of the figure.
    """
    graphs = as_graph_set(graph, attributes=attributes)
    if len(graphs) != 1:
        raise DataError(f"draw_refinement takes one graph, got {len(graphs)}")
    refinement = refine_at_most(graphs, method, depth)
    panels = refinement.depth + 1
    columns = min(panels, 4)
    rows = math.ceil(panels / columns)
    figure = Figure(figsize=(3.6 * columns, 3.6 * rows + 0.9), layout="constrained")
    positions = layout(graphs, seed)
    edge_ranks, edge_count = rank_labels(graphs.edge_labels)
    for panel in range(panels):
        axes = figure.add_subplot(rows, columns, panel + 1)
        _draw_edges(axes, graphs, positions, edge_ranks)
        count = refinement.num_colors(panel)
        size = 240 if graphs.num_nodes <= 30 else 90
        fills = _palette(refinement.colors[panel], count)
        axes.scatter(positions[:, 0], positions[:, 1], s=size, c=fills, edgecolors="#333333", zorder=2)
        if graphs.num_nodes <= 60:
            for (x, y), color in zip(positions.tolist(), refinement.colors[panel], strict=True):
                axes.text(x, y, str(color), ha="center", va="center", fontsize=7, zorder=3)
        is_stable = refinement.stable_depth is not None and panel >= refinement.stable_depth
        name = f"{count} colour{'s' * (count != 1)}{' (stable)' * is_stable}"
        axes.set_title(f"depth {panel}: {name}", fontsize=10)
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.margins(0.12)
    _legend(figure, graphs, refinement.colors[0], (edge_ranks, edge_count), node_names, edge_names)
    figure.suptitle(title or f"{method.upper()} colour refinement", fontsize=12)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)
    return refinement


def layout(graphs: GraphSet, seed: int = 0) -> np.ndarray:
    """Node positions (N, 2): Kamada-Kawai for small connected graphs, else a seeded spring layout."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(graphs.num_nodes))
    graph.add_edges_from(zip(graphs.src.tolist(), graphs.dst.tolist(), strict=True))
    if 1 < graphs.num_nodes <= 200 and nx.is_connected(graph):
        positions = nx.kamada_kawai_layout(graph, pos=nx.circular_layout(graph))
    else:
        positions = nx.spring_layout(graph, seed=seed)
    return np.array([positions[node] for node in range(graphs.num_nodes)]).reshape(-1, 2)


def _palette(numbers: np.ndarray, count: int) -> np.ndarray:
    """A light colour for each number; golden-ratio steps of the hue make close numbers look different."""
    hue = (numbers * 0.61803398875) % 1.0
    saturation = 0.3 + 0.13 * (numbers % 3 if count > 8 else np.zeros_like(numbers))
    return hsv_to_rgb(np.stack([hue, saturation, np.full(len(numbers), 0.97)], axis=1))


def _draw_edges(axes, graphs: GraphSet, positions: np.ndarray, ranks: np.ndarray) -> None:
    """Lines for edges in both directions with one label, arrows for other edges, circles for self-loops."""
    edges = set(zip(graphs.src.tolist(), graphs.dst.tolist(), ranks.tolist(), strict=True))
    for a, b, rank in sorted(edges):
        color = EDGE_COLORS[rank % 10]
        if a == b:
            axes.plot(positions[a, 0], positions[a, 1] + 0.06, "o", ms=16, mfc="none", mec=color, zorder=1)
        elif (b, a, rank) not in edges:
            arrow = {"arrowstyle": "->", "color": color, "shrinkB": 8}
            axes.annotate("", positions[b], positions[a], arrowprops=arrow)
        elif a < b:
            axes.plot(*positions[[a, b]].T, color=color, lw=2.2, zorder=1)


def _legend(figure, graphs: GraphSet, colors: np.ndarray, edges: tuple, node_names, edge_names) -> None:
    count = int(colors.max(initial=-1)) + 1
    handles = []
    fills = _palette(np.arange(count), count)
    for number, label in enumerate(label_values(graphs.node_labels, colors, count)[:MAX_LEGEND_ENTRIES]):
        style = {"marker": "o", "ls": "", "mfc": fills[number], "mec": "#333333", "ms": 9}
        handles.append(Line2D([], [], **style, label=f"node {_name(label, node_names)}"))
    for rank, label in enumerate(label_values(graphs.edge_labels, *edges)[:MAX_LEGEND_ENTRIES]):
        style = {"color": EDGE_COLORS[rank % 10], "lw": 2.2}
        handles.append(Line2D([], [], **style, label=f"edge {_name(label, edge_names)}"))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8), fontsize=8)


def _name(label: object, names: Sequence[str] | None) -> str:
    """Name of the column of a one-hot label, value of other labels."""
    values = np.atleast_1d(np.asarray(label))
    if values.dtype.kind in "if" and values.size > 1 and values.sum() == 1 and set(values.tolist()) <= {0, 1}:
        column = int(values.argmax())
        return names[column] if names is not None and len(names) == len(values) else str(column)
    return ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values.tolist()) or "(no label)"
