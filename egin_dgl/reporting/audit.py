"""An audit of a dataset on the terminal."""

from rich.box import SIMPLE
from rich.table import Table

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.ewl.audit import Audit


def audit_table(audit: Audit) -> Table:
    """What each method tells apart at each depth, side by side, in 60 columns."""
    title = "node colours, graphs told apart, best accuracy (ceiling)"
    table = Table(title=title, title_justify="left", box=SIMPLE, show_edge=False)
    methods = list(dict.fromkeys(level.method for level in audit.levels))
    table.add_column("depth", justify="right")
    for method in methods:
        for what in ("colours", "told\napart", "best,\n%"):
            table.add_column(f"{method.upper()}\n{what}", justify="right", no_wrap=True)
    for depth in sorted({level.depth for level in audit.levels}):
        cells = []
        for method in methods:
            level = audit.level(method, depth)
            cells += [f"{level.colors:,}", f"{level.graphs:,}", ceiling_text(level.ceiling)]
        table.add_row(str(depth), *cells)
    return table


def ceiling_text(ceiling: float | None) -> str:
    """In %, with as many decimals as keep what is not all from reading 100.0; nothing where no class is known."""
    if ceiling is None:
        return ""
    texts = (f"{100 * ceiling:.{digits}f}" for digits in range(1, 10))
    return next((text for text in texts if ceiling == 1 or float(text) < 100), "100.0")


def audit_hints(audit: Audit, dataset: GraphDataset, attributes: bool) -> list[str]:
    """What to know of the audit's input, of which `attributes` says whether they counted as labels."""
    info, nodes = dataset.info, len(dataset.node_feats)
    there = info.node_attributes or info.edge_attributes
    if there and not attributes:
        return [
            f"attributes of nodes ({info.node_attributes}) and edges ({info.edge_attributes}) are left out"
        ]
    telling = [level for level in audit.levels if level.depth <= 1 and 2 * level.colors > nodes]
    if there and telling:
        first = min(telling, key=lambda level: level.depth)
        told = f"attributes give {nodes:,} nodes {first.colors:,} colours at depth {first.depth} already"
        return [f"{told}, which says little: --decimals 1 rounds them, --no-attributes leaves them out"]
    return []


def duplicates_line(audit: Audit) -> str:
    """Duplicates in words; the ceiling is the best accuracy any model of that power can reach."""
    copies = sum(len(group) - 1 for group in audit.duplicates)
    text = (
        f"{copies} exact duplicates (labels of nodes and edges respected) in {len(audit.duplicates)} groups; "
    )
    text += f"{len(audit.opposite)} groups carry different classes"
    if audit.leaks is not None:
        text += f"; {audit.leaking_graphs} graphs have a duplicate in another fold"
    return text
