"""A dataset on the terminal: its size, hints on what may harm training on it, and its E-WL audit."""

import math

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text
from torch import Tensor

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.errors import list_first
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.ewl.audit import Audit
from egin_dgl.reporting.formatting import pluralize

MAX_SCALE_RATIO = 10  # between the root mean squares of attribute columns
MAX_CLASS_RATIO = 4  # between the largest and the smallest class


def data_line(dataset: GraphDataset) -> str:
    """Graphs, nodes, edges, classes and feature dimensions."""
    info, sizes = dataset.info, dataset.node_offsets.diff()
    parts = [pluralize(info.graphs, "graph")]
    if info.graphs:
        parts[0] += f" of {sizes.min():,} to {sizes.max():,} nodes"
    parts += [pluralize(len(dataset.node_feats), "node"), pluralize(len(dataset.src), "directed edge")]
    if counts := class_counts(dataset):
        smallest = min(counts, key=counts.__getitem__)
        parts.append(f"{pluralize(len(counts), 'class')} (smallest: {smallest} with {counts[smallest]:,})")
    if not info.classes and info.target_names:
        missing = int(dataset.labels.isnan().sum())
        known = f" ({missing / dataset.labels.numel():.0%} missing)" if missing else ""
        parts.append(f"{info.task} of {list_first(info.target_names)}{known}")
    for kind, feats, attributes in features(dataset):
        continuous = f" ({pluralize(attributes, 'attribute')})" if attributes else ""
        parts.append(f"{pluralize(feats.shape[1], f'{kind} feature')}{continuous}")
    return f"{info.name}: {'; '.join(parts)}"


def hints(
    dataset: GraphDataset,
    standardized: bool = False,
    balanced: bool = False,
    kernel_attributes: bool | None = None,
) -> list[str]:
    """Sentences on what a user should know of the data, if training standardizes attributes, or weights classes, or not.

    `kernel_attributes`: whether a kernel uses attributes; None for a network.
    """
    counts, found = class_counts(dataset), []
    single = [name for name, count in counts.items() if count == 1]
    if single:
        names = ", ".join(single[:5]) + (", …" if len(single) > 5 else "")
        classes = pluralize(len(single), "class")
        found.append(f"{classes} with a single graph ({names}): it is either trained on or tested")
    if counts and max(counts.values()) >= MAX_CLASS_RATIO * min(counts.values()) and not balanced:
        found.append(
            f"classes are imbalanced, {max(counts.values()):,} graphs to {min(counts.values()):,}: see "
            "balanced_accuracy, and trainer.class_weights=balanced trainer.monitor=balanced_accuracy"
        )
    if len(dataset.src) and (dataset.edge_feats == dataset.edge_feats[:1]).all():
        found.append("all edges have the same features: edge features carry no information")
    attributes = [pluralize(n, f"{kind} attribute") for kind, _, n in features(dataset) if n]
    if attributes and kernel_attributes is False:
        ignored = " and ".join(attributes)
        found.append(f"the kernel ignores {ignored}; model.attributes=true uses them as labels")
    if kernel_attributes is None and not standardized:
        for kind, feats, number in features(dataset):
            small, large = column_scales(feats, number)
            if large > MAX_SCALE_RATIO * small:
                scales = f"{small:.2g} to {large:.2g}"
                found.append(f"{kind} features differ in scale, {scales}: trainer.standardize=auto may help")
    return found


def features(dataset: GraphDataset) -> list[tuple[str, Tensor, int]]:
    """Features of nodes and of edges, and how many of their columns, the first, are attributes."""
    nodes = ("node", dataset.node_feats, dataset.info.node_attributes)
    return [nodes, ("edge", dataset.edge_feats, dataset.info.edge_attributes)]


def class_counts(dataset: GraphDataset) -> dict[str, int]:
    """Graphs per class name; empty without known classes."""
    if not dataset.info.classes:
        return {}
    known = dataset.labels[dataset.labels >= 0]
    counts = known.bincount(minlength=dataset.info.classes).tolist() if len(known) else []
    return dict(zip(dataset.info.class_names, counts, strict=False))


def column_scales(feats: Tensor, attributes: int) -> tuple[float, float]:
    """Smallest and largest root mean square of the columns; one-hot columns, if any, count as 1."""
    squares = feats[:, :attributes].double().square().mean(dim=0).tolist() if len(feats) else []
    sizes = [math.sqrt(square) for square in squares if square > 0]
    if not sizes:
        return 1.0, 1.0
    sizes += [1.0] * (feats.shape[1] > attributes)
    return min(sizes), max(sizes)


def audit_table(audit: Audit) -> Table:
    """Colours, distinct graphs and the bound on the score of each method at each depth, in 60 columns."""
    best = "minimum" if METRICS[audit.metric].is_loss else "maximum"
    mean = "mean " if len(audit.targets) > 1 else ""
    table = make_table(f"node colours, distinct graphs, {best} {mean}{audit.metric}")
    methods = list(dict.fromkeys(level.method for level in audit.levels))
    table.add_column("depth", justify="right")
    for method in methods:
        for header in ("colours", "graphs", bound_header(audit.metric)):
            table.add_column(f"{method.upper()}\n{header}", justify="right", no_wrap=True)
    for depth in sorted({level.depth for level in audit.levels}):
        cells = []
        for method in methods:
            level = audit.level(method, depth)
            cells += [f"{level.colors:,}", f"{level.graphs:,}", format_bound(level.bound, audit.metric)]
        table.add_row(str(depth), *cells)
    return table


def target_table(audit: Audit) -> Table:
    """The bound of each target by each method at its last depth."""
    last = {level.method: level for level in audit.levels}
    depth = max((level.depth for level in audit.levels), default=0)
    table = make_table(f"bounds of each target at depth {depth}")
    table.add_column("target")
    for method in last:
        table.add_column(f"{method.upper()}\n{bound_header(audit.metric)}", justify="right", no_wrap=True)
    for number, name in enumerate(audit.targets):
        bounds = [format_bound(level.per_target[number], audit.metric) for level in last.values()]
        table.add_row(Text(name), *bounds)
    return table


def make_table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE, show_edge=False)


def bound_header(metric: str) -> str:
    return f"min,\n{metric}" if METRICS[metric].is_loss else "max,\n%"


def format_bound(bound: float | None, metric: str = "accuracy") -> str:
    """In %, with enough decimals that only 1.0 reads 100.0, or three digits of a loss; empty where it is undefined."""
    if bound is None:
        return ""
    if METRICS[metric].is_loss:
        return f"{bound:.3g}"
    texts = (f"{100 * bound:.{digits}f}" for digits in range(1, 10))
    return next((text for text in texts if bound == 1 or float(text) < 100), "100.0")


def audit_hints(audit: Audit, dataset: GraphDataset, attributes: bool) -> list[str]:
    """Remarks on continuous attributes; `attributes`: whether the audit used them as labels."""
    info, nodes = dataset.info, len(dataset.node_feats)
    if not (info.node_attributes or info.edge_attributes):
        return []
    if not attributes:
        numbers = f"nodes ({info.node_attributes}) and edges ({info.edge_attributes})"
        return [f"attributes of {numbers} are not used"]
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
    text += f"{len(audit.opposite)} groups have different {'classes' if audit.metric == 'accuracy' else 'targets'}"
    if audit.leaks is not None:
        text += f"; {audit.leaking_graphs} graphs have a duplicate in another fold"
    return text
