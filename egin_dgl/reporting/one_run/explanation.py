"""An explanation as tables, and as a picture of the graph shaded by the contributions of its nodes and edges."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from rich.box import SIMPLE
from rich.table import Table

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.ewl.draw import layout
from egin_dgl.ewl.inputs import as_graph_set
from egin_dgl.files import atomic_path, write_text
from egin_dgl.inference.explanation import Explanation

COLORS = colormaps["RdBu_r"]  # red raises the log-odds or value; blue lowers it
MAX_ROWS = 12  # of the table on the terminal
MAX_TEXTS = 60  # nodes up to which each has its label


def write_explanation(explanation: Explanation, graph: GraphDataset, directory: Path, by: str) -> None:
    """Write edges.csv, nodes.csv and explanation.png, which shows the contributions `by` one method."""
    bonds = edge_labels(graph)
    labels = {"nodes": node_labels(graph), "edges": [bonds[pair] for pair in pairs(explanation.edges)]}
    for name, frame in (("nodes", explanation.nodes), ("edges", explanation.edges)):
        text = frame.assign(label=labels[name]).to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_text(directory / f"{name}.csv", text)
    draw = draw_molecule if graph.smiles else draw_graph
    with atomic_path(directory / "explanation.png") as temporary:
        draw(explanation, graph, by, temporary)


def title_of(explanation: Explanation) -> str:
    return f"{explanation.graph}: {explanation.prediction}"


def draw_graph(explanation: Explanation, graph: GraphDataset, by: str, path: Path) -> None:
    """Nodes and edges coloured by their contribution; wide edges contribute most."""
    points = layout(as_graph_set(graph))
    values = {"edges": explanation.edges[by].to_numpy(), "nodes": explanation.nodes[by].to_numpy()}
    scales = {name: Normalize(-max_abs(found), max_abs(found)) for name, found in values.items()}
    figure = Figure(figsize=(7.4, 6), layout="constrained")
    axes = figure.subplots()
    segments = [points[[a, b]] for a, b in pairs(explanation.edges)]
    widths = 1.5 + 7 * np.abs(values["edges"]) / max_abs(values["edges"])
    axes.add_collection(LineCollection(segments, colors="#bbbbbb", linewidths=widths + 1, zorder=1))
    colors = COLORS(scales["edges"](values["edges"]))
    axes.add_collection(LineCollection(segments, colors=colors, linewidths=widths, zorder=2))
    fills = COLORS(scales["nodes"](values["nodes"]))
    size = 260 if len(points) <= 40 else 60
    axes.scatter(points[:, 0], points[:, 1], s=size, c=fills, edgecolors="#444444", zorder=3)
    if len(points) <= MAX_TEXTS:
        for (x, y), text, fill in zip(points.tolist(), node_labels(graph), fills, strict=True):
            color = "white" if fill[:3].mean() < 0.5 else "black"
            axes.text(x, y, text, ha="center", va="center", fontsize=8, color=color, zorder=4)
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.margins(0.12)
    axes.set_title(title_of(explanation))
    for name, scale in scales.items():
        label = f"{name}: contribution to the {explanation.task.evidence_name}, by {by}"
        figure.colorbar(ScalarMappable(scale, COLORS), ax=axes, shrink=0.7, label=label)
    figure.savefig(path, format="png", dpi=120)


def draw_molecule(explanation: Explanation, graph: GraphDataset, by: str, path: Path) -> None:
    """The molecule as RDKit draws it, atoms and bonds coloured by their contribution."""
    from rdkit import Chem
    from rdkit.Chem.Draw import rdMolDraw2D

    molecule = Chem.MolFromSmiles(graph.smiles[0])
    bond_colors = {}
    colors = light_colors(explanation.edges[by].to_numpy())
    for pair, color in zip(pairs(explanation.edges), colors, strict=True):
        bond = molecule.GetBondBetweenAtoms(*pair)
        if bond is not None:
            bond_colors[bond.GetIdx()] = color
    canvas = rdMolDraw2D.MolDraw2DCairo(760, 620)
    options: Any = canvas.drawOptions()
    options.legendFontSize = 22
    options.highlightBondWidthMultiplier = 14
    rdMolDraw2D.PrepareAndDrawMolecule(
        canvas,
        molecule,
        legend=f"{title_of(explanation)}; red raises it, blue lowers it ({by})",
        highlightAtoms=list(range(molecule.GetNumAtoms())),
        highlightAtomColors=dict(enumerate(light_colors(explanation.nodes[by].to_numpy()))),
        highlightBonds=list(bond_colors),
        highlightBondColors=bond_colors,
    )
    canvas.FinishDrawing()
    path.write_bytes(canvas.GetDrawingText())


def explanation_table(explanation: Explanation, graph: GraphDataset, by: str) -> Table:
    """The edges with the largest contributions."""
    title = f"{title_of(explanation)}; contributions of edges to its {explanation.task.evidence_name}"
    table = Table(title=title, title_justify="left", box=SIMPLE)
    methods = [name for name in ("occlusion", "gradients") if name in explanation.edges]
    for name in ("edge", "between", *methods):
        table.add_column(name, justify="right" if name in methods else "left")
    atoms, bonds = node_labels(graph), edge_labels(graph)
    order = explanation.edges[by].abs().sort_values(ascending=False, kind="stable").index[:MAX_ROWS]
    for _, row in explanation.edges.loc[order].iterrows():
        a, b = int(row["source"]), int(row["target"])
        between = f"{a} ({atoms[a]}) – {b} ({atoms[b]})"
        table.add_row(bonds[a, b], between, *(f"{row[name]:+.3f}" for name in methods))
    if explanation.residual is not None:
        table.caption = f"residual of integrated gradients: {100 * explanation.residual:.1f} %"
    return table


def pairs(edges: pd.DataFrame) -> list[tuple[int, int]]:
    return list(zip(edges["source"].tolist(), edges["target"].tolist(), strict=True))


def max_abs(values: np.ndarray) -> float:
    return float(np.abs(values).max(initial=0)) or 1.0


def light_colors(values: np.ndarray) -> list[tuple[float, float, float]]:
    """Light colours on which text is readable."""
    colors = COLORS(0.5 + 0.32 * values / max_abs(values)).tolist()
    return [(red, green, blue) for red, green, blue, _ in colors]


def hot_labels(features: np.ndarray, names: tuple[str, ...]) -> list[str]:
    """The values of the one-hot columns of each row, at most three."""
    is_label = np.array(["=" in name for name in names], dtype=bool)
    values = np.array([name.partition("=")[2] for name in names], dtype=object)
    return [" ".join(values[(row == 1) & is_label][:3]) for row in features]


def node_labels(graph: GraphDataset) -> list[str]:
    return hot_labels(graph.node_feats.numpy(), graph.info.node_names)


def edge_labels(graph: GraphDataset) -> dict[tuple[int, int], str]:
    """The label of each pair of adjacent nodes; of parallel edges that of the last."""
    texts = hot_labels(graph.edge_feats.numpy(), graph.info.edge_names)
    ends = zip(graph.src.tolist(), graph.dst.tolist(), texts, strict=True)
    return {(min(a, b), max(a, b)): text for a, b, text in ends}
