"""E-WL audit of a dataset on the terminal."""

from rich.box import SIMPLE
from rich.table import Table

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.ewl.audit import Audit


def audit_table(audit: Audit) -> Table:
    """Colours, distinct graphs and accuracy bound of each method at each depth, in 60 columns."""
    title = "node colours, distinct graphs, maximum accuracy"
    table = Table(title=title, title_justify="left", box=SIMPLE, show_edge=False)
    methods = list(dict.fromkeys(level.method for level in audit.levels))
    table.add_column("depth", justify="right")
    for method in methods:
        for header in ("colours", "graphs", "max,\n%"):
            table.add_column(f"{method.upper()}\n{header}", justify="right", no_wrap=True)
    for depth in sorted({level.depth for level in audit.levels}):
        cells = []
        for method in methods:
            level = audit.level(method, depth)
            cells += [f"{level.colors:,}", f"{level.graphs:,}", format_bound(level.ceiling)]
        table.add_row(str(depth), *cells)
    return table


def format_bound(bound: float | None) -> str:
    """In %, with enough decimals that only 1.0 reads 100.0; empty without known classes."""
    if bound is None:
        return ""
    texts = (f"{100 * bound:.{digits}f}" for digits in range(1, 10))
    return next((text for text in texts if bound == 1 or float(text) < 100), "100.0")


def audit_hints(audit: Audit, dataset: GraphDataset, attributes: bool) -> list[str]:
    """Remarks on continuous attributes; `attributes`: whether the audit used them as labels."""
    info, nodes = dataset.info, len(dataset.node_feats)
    if not (info.node_attributes or info.edge_attributes):
        return []
    if not attributes:
        return [
            f"attributes of nodes ({info.node_attributes}) and edges ({info.edge_attributes}) are not used"
        ]
    unique = [level for level in audit.levels if level.depth <= 1 and 2 * level.colors > nodes]
    if not unique:
        return []
    first = min(unique, key=lambda level: level.depth)
    return [
        f"attributes give {nodes:,} nodes {first.colors:,} colours at depth {first.depth}, so the bounds mean little: "
        "--decimals 1 rounds them, --no-attributes ignores them"
    ]


def duplicates_line(audit: Audit) -> str:
    copies = sum(len(group) - 1 for group in audit.duplicates)
    text = f"{copies} exact duplicates (equal node and edge labels) in {len(audit.duplicates)} groups; "
    text += f"{len(audit.opposite)} groups have different classes"
    if audit.leaks is not None:
        text += f"; {audit.leaking_graphs} graphs have a duplicate in another fold"
    return text
