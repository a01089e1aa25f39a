"""An explanation for people: tables, and a picture of the graph with what speaks for the answer and what against it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from rich.box import SIMPLE
from rich.table import Table

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.ewl.draw import layout
from egin_dgl.ewl.inputs import as_graph_set
from egin_dgl.files import atomic_path, write_text
from egin_dgl.inference.explanation import Explanation

SHADES = colormaps["RdBu_r"]  # red: for the answer; blue: against it
MOST_ROWS = 12  # of the table on the terminal
MOST_TEXTS = 60  # nodes up to which each has its label written


def write_explanation(found: Explanation, graph: GraphDataset, folder: Path, by: str) -> None:
    """edges.csv, nodes.csv and explanation.png."""
    nodes = found.nodes.assign(label=hot_labels(graph.node_feats.numpy(), graph.info.node_names))
    ends = undirected_labels(graph)
    edges = found.edges.assign(label=[ends[pair] for pair in pairs(found.edges)])
    for name, frame in (("nodes", nodes), ("edges", edges)):
        write_text(
            folder / f"{name}.csv", frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        )
    title = f"{found.graph}: {found.answer}, p = {found.probability:.3f}"
    picture = molecule_picture if graph.smiles else graph_picture
    with atomic_path(folder / "explanation.png") as temporary:
        picture(found, graph, by, title, temporary)


def graph_picture(found: Explanation, graph: GraphDataset, by: str, title: str, path: Path) -> None:
    """Nodes and edges shaded by their share in the log-odds; an edge is the wider the more rests on it."""
    places = layout(as_graph_set(graph))
    shares = found.edges[by].to_numpy(), found.nodes[by].to_numpy()
    scales = [Normalize(-top, top) for top in map(largest, shares)]
    figure = Figure(figsize=(7.4, 6), layout="constrained")
    axes = figure.subplots()
    for (a, b), share in zip(pairs(found.edges), shares[0], strict=True):
        width = 1.5 + 7 * abs(share) / scales[0].vmax
        axes.plot(*places[[a, b]].T, color="#bbbbbb", lw=width + 1, zorder=1, solid_capstyle="round")
        axes.plot(
            *places[[a, b]].T, color=SHADES(scales[0](share)), lw=width, zorder=2, solid_capstyle="round"
        )
    fills = SHADES(scales[1](shares[1]))
    axes.scatter(
        places[:, 0],
        places[:, 1],
        s=260 if len(places) <= 40 else 60,
        c=fills,
        edgecolors="#444444",
        zorder=3,
    )
    if len(places) <= MOST_TEXTS:
        texts = hot_labels(graph.node_feats.numpy(), graph.info.node_names)
        for (x, y), text, fill in zip(places.tolist(), texts, fills, strict=True):
            color = "white" if fill[:3].mean() < 0.5 else "black"
            axes.text(x, y, text, ha="center", va="center", fontsize=8, color=color, zorder=4)
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.margins(0.12)
    axes.set_title(title)
    for scale, what in zip(scales, ("edges", "nodes"), strict=True):
        label = f"{what}: share in the log-odds of the answer, by {by}"
        figure.colorbar(ScalarMappable(scale, SHADES), ax=axes, shrink=0.7, label=label)
    figure.savefig(path, format="png", dpi=120)


def molecule_picture(found: Explanation, graph: GraphDataset, by: str, title: str, path: Path) -> None:
    """The molecule itself, its atoms and bonds shaded in the same way."""
    from rdkit import Chem
    from rdkit.Chem.Draw import rdMolDraw2D

    molecule = Chem.MolFromSmiles(graph.smiles[0])
    atoms = shades(found.nodes[by].to_numpy())
    bonds, of_bond = shades(found.edges[by].to_numpy()), {}
    for pair, color in zip(pairs(found.edges), bonds, strict=True):
        bond = molecule.GetBondBetweenAtoms(*pair)
        if bond is not None:
            of_bond[bond.GetIdx()] = color
    canvas = rdMolDraw2D.MolDraw2DCairo(760, 620)
    options: Any = canvas.drawOptions()
    options.legendFontSize = 22
    options.highlightBondWidthMultiplier = 14
    rdMolDraw2D.PrepareAndDrawMolecule(
        canvas,
        molecule,
        legend=f"{title}; red speaks for it, blue against ({by})",
        highlightAtoms=list(range(molecule.GetNumAtoms())),
        highlightAtomColors=dict(enumerate(atoms)),
        highlightBonds=list(of_bond),
        highlightBondColors=of_bond,
    )
    canvas.FinishDrawing()
    path.write_bytes(canvas.GetDrawingText())


def explanation_table(found: Explanation, graph: GraphDataset, by: str) -> Table:
    """The edges that most rests on."""
    title = (
        f"{found.graph}: {found.answer}, p = {found.probability:.3f}; edges by their share in its log-odds"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE)
    columns = [name for name in ("occlusion", "gradients") if name in found.edges]
    for name in ("edge", "between", *columns):
        table.add_column(name, justify="right" if name in columns else "left")
    texts, ends = hot_labels(graph.node_feats.numpy(), graph.info.node_names), undirected_labels(graph)
    order = found.edges[by].abs().sort_values(ascending=False, kind="stable").index[:MOST_ROWS]
    for _, row in found.edges.loc[order].iterrows():
        a, b = int(row["source"]), int(row["target"])
        between = f"{a} ({texts[a]}) – {b} ({texts[b]})"
        table.add_row(ends[a, b], between, *(f"{row[name]:+.3f}" for name in columns))
    if found.missed is not None:
        table.caption = (
            f"gradients leave {100 * found.missed:.1f} % of the rise from empty features unaccounted for"
        )
    return table


def pairs(edges: pd.DataFrame) -> list[tuple[int, int]]:
    return list(zip(edges["source"].tolist(), edges["target"].tolist(), strict=True))


def largest(shares: np.ndarray) -> float:
    return float(np.abs(shares).max(initial=0)) or 1.0


def shades(shares: np.ndarray) -> list[tuple[float, float, float]]:
    """A light colour a share, so that what is written over it can be read."""
    values = SHADES(0.5 + 0.32 * shares / largest(shares))
    return [(float(r), float(g), float(b)) for r, g, b, _ in values]


def hot_labels(features: np.ndarray, names: tuple[str, ...]) -> list[str]:
    """What the one-hot columns of each row say: the value alone, of several the first three."""
    hot = np.array(["=" in name for name in names], dtype=bool)
    values = np.array([name.partition("=")[2] for name in names], dtype=object)
    rows = ((row == 1) & hot for row in features)
    return [" ".join(values[row][:3]) for row in rows]


def undirected_labels(graph: GraphDataset) -> dict[tuple[int, int], str]:
    """The label of each joined pair; of several edges that of the last."""
    texts = hot_labels(graph.edge_feats.numpy(), graph.info.edge_names)
    ends = zip(graph.src.tolist(), graph.dst.tolist(), texts, strict=True)
    return {(min(a, b), max(a, b)): text for a, b, text in ends}
