"""What was read, in one line, and what of it a person should know before numbers come from it: a line each."""

import math

from torch import Tensor

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.reporting.formatting import counted

SCALES = 10  # attributes whose sizes differ by more than this pull on weights of one size too unequally
SKEW = 4  # the largest class to the smallest


def data_line(dataset: GraphDataset) -> str:
    """Graphs, nodes, edges, classes with the smallest, dimensions."""
    info, sizes = dataset.info, dataset.node_offsets.diff()
    parts = [counted(info.graphs, "graph")]
    if info.graphs:
        parts[0] += f" of {sizes.min():,} to {sizes.max():,} nodes"
    parts += [counted(len(dataset.node_feats), "node"), counted(len(dataset.src), "directed edge")]
    if counts := class_counts(dataset):
        smallest = min(counts, key=counts.__getitem__)
        parts.append(f"{counted(len(counts), 'class')}, the smallest, {smallest}, of {counts[smallest]:,}")
    for what, dim, attributes in (
        ("node", info.node_dim, info.node_attributes),
        ("edge", info.edge_dim, info.edge_attributes),
    ):
        continuous = f" ({counted(attributes, 'attribute')})" if attributes else ""
        parts.append(f"{counted(dim, f'{what} feature')}{continuous}")
    return f"{info.name}: {'; '.join(parts)}"


def hints(
    dataset: GraphDataset,
    standardized: bool = False,
    balanced: bool = False,
    kernel_attributes: bool | None = None,
) -> list[str]:
    """Sentences, each only where it is true.

    standardized, balanced: what training does about attributes and classes already. kernel_attributes: whether a kernel
    counts attributes; None for a network.
    """
    info, counts = dataset.info, class_counts(dataset)
    found = []
    single = [name for name, count in counts.items() if count == 1]
    if single:
        listed = ", ".join(single[:5]) + (", …" if len(single) > 5 else "")
        found.append(
            f"{counted(len(single), 'class')} of a single graph ({listed}): never both trained on and tested"
        )
    if counts and max(counts.values()) >= SKEW * min(counts.values()) and not balanced:
        found.append(
            f"classes are skewed, {max(counts.values()):,} graphs to {min(counts.values()):,}: see balanced_accuracy, "
            "and trainer.class_weights=balanced trainer.monitor=balanced_accuracy"
        )
    if len(dataset.src) and (dataset.edge_feats == dataset.edge_feats[:1]).all():
        found.append("all edges carry the same features: there is nothing in them to learn from")
    attributes = [
        counted(number, f"{what} attribute")
        for what, number in (("node", info.node_attributes), ("edge", info.edge_attributes))
        if number
    ]
    if attributes and kernel_attributes is False:
        found.append(
            f"the kernel leaves {' and '.join(attributes)} out; model.attributes=true counts equal ones"
        )
    if kernel_attributes is None and not standardized:
        for what, feats, number in (
            ("node", dataset.node_feats, info.node_attributes),
            ("edge", dataset.edge_feats, info.edge_attributes),
        ):
            small, large = scales(feats, number)
            if large > SCALES * small:
                found.append(
                    f"{what} features differ in size, {small:.2g} to {large:.2g}: trainer.standardize=true may help"
                )
    return found


def class_counts(dataset: GraphDataset) -> dict[str, int]:
    """The graphs of each class, by its name; none where no class is known."""
    known = dataset.labels[dataset.labels >= 0]
    counts = known.bincount(minlength=dataset.info.classes).tolist() if len(known) else []
    return dict(zip(dataset.info.class_names, counts, strict=False))


def scales(feats: Tensor, attributes: int) -> tuple[float, float]:
    """Of the columns, the smallest and the largest root mean square; one-hot columns, if there are any, count as 1."""
    squares = feats[:, :attributes].double().square().mean(dim=0).tolist() if len(feats) else []
    sizes = [math.sqrt(square) for square in squares if square > 0]
    if not sizes:
        return 1.0, 1.0
    sizes += [1.0] * (feats.shape[1] > attributes)
    return min(sizes), max(sizes)
