"""An audit of a dataset on the terminal."""

from rich.table import Table

from egin_dgl.ewl.audit import Audit


def audit_table(audit: Audit) -> Table:
    """What each method tells apart at each depth, side by side."""
    table = Table(title=f"{audit.dataset}: {audit.graphs} graphs", title_justify="left")
    methods = list(dict.fromkeys(level.method for level in audit.levels))
    table.add_column("depth", justify="right")
    for method in methods:
        for what in ("colours", "graphs told apart", "ceiling, %"):
            table.add_column(f"{method.upper()}\n{what}", justify="right")
    for depth in sorted({level.depth for level in audit.levels}):
        cells = []
        for method in methods:
            level = audit.level(method, depth)
            ceiling = "" if level.ceiling is None else f"{100 * level.ceiling:.1f}"
            cells += [f"{level.colors:,}", f"{level.graphs:,}", ceiling]
        table.add_row(str(depth), *cells)
    return table


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
