"""A line with the size of a dataset, and hints on what may harm training on it."""

import math

from torch import Tensor

from egin_dgl.data.dataset import GraphDataset
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
    for kind, dim, attributes in (
        ("node", info.node_dim, info.node_attributes),
        ("edge", info.edge_dim, info.edge_attributes),
    ):
        continuous = f" ({pluralize(attributes, 'attribute')})" if attributes else ""
        parts.append(f"{pluralize(dim, f'{kind} feature')}{continuous}")
    return f"{info.name}: {'; '.join(parts)}"


def hints(
    dataset: GraphDataset,
    standardized: bool = False,
    balanced: bool = False,
    kernel_attributes: bool | None = None,
) -> list[str]:
    """Sentences on properties of the data that a user should know of.

    Args:
        standardized: whether training standardizes attributes.
        balanced: whether training weights classes.
        kernel_attributes: whether a kernel uses attributes; None for a network.
    """
    info, counts = dataset.info, class_counts(dataset)
    found = []
    single = [name for name, count in counts.items() if count == 1]
    if single:
        names = ", ".join(single[:5]) + (", …" if len(single) > 5 else "")
        found.append(
            f"{pluralize(len(single), 'class')} with a single graph ({names}): it is either trained on or tested"
        )
    if counts and max(counts.values()) >= MAX_CLASS_RATIO * min(counts.values()) and not balanced:
        found.append(
            f"classes are imbalanced, {max(counts.values()):,} graphs to {min(counts.values()):,}: see "
            "balanced_accuracy, and trainer.class_weights=balanced trainer.monitor=balanced_accuracy"
        )
    if len(dataset.src) and (dataset.edge_feats == dataset.edge_feats[:1]).all():
        found.append("all edges have the same features: edge features carry no information")
    attributes = [
        pluralize(number, f"{kind} attribute")
        for kind, number in (("node", info.node_attributes), ("edge", info.edge_attributes))
        if number
    ]
    if attributes and kernel_attributes is False:
        found.append(
            f"the kernel ignores {' and '.join(attributes)}; model.attributes=true uses them as labels"
        )
    if kernel_attributes is None and not standardized:
        for kind, feats, number in (
            ("node", dataset.node_feats, info.node_attributes),
            ("edge", dataset.edge_feats, info.edge_attributes),
        ):
            small, large = column_scales(feats, number)
            if large > MAX_SCALE_RATIO * small:
                found.append(
                    f"{kind} features differ in scale, {small:.2g} to {large:.2g}: trainer.standardize=true may help"
                )
    return found


def class_counts(dataset: GraphDataset) -> dict[str, int]:
    """Graphs per class name; empty without known classes."""
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
