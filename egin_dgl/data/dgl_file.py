"""Graphs that `dgl.save_graphs` wrote, with their classes among the tensors it keeps beside them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import dgl
import torch

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.columns import Choice
from egin_dgl.data.dataset import GraphDataset, GraphOptions
from egin_dgl.data.features import Vocabulary
from egin_dgl.data.from_graphs import arrays_of
from egin_dgl.data.load import content_hash, prepare
from egin_dgl.errors import ConfigError, DataError

# How DGL's files begin; a foreign file would be read as sizes, and memory taken for them.
MAGIC = bytes.fromhex("3fa1b446f04f2edd")


def load_dgl_file(
    path: str,
    label: str | None = None,
    node_labels: Sequence[str] | None = None,
    node_attributes: Sequence[str] | None = None,
    edge_labels: Sequence[str] | None = None,
    edge_attributes: Sequence[str] | None = None,
    edges: str = "as_given",
    self_loops: str = "remove",
    node_features: str = "degree",
    use_edge_features: bool = True,
    name: str | None = None,
    cache: bool = True,
    vocabulary: Vocabulary | None = None,
    class_names: Sequence[str] | None = None,
) -> GraphDataset:
    """Load a file of DGL graphs, from the processed cache where the same file was prepared with the same options."""
    options = GraphOptions(edges, self_loops, node_features, use_edge_features)
    chosen = (
        Choice.of(node_labels, node_attributes, "node"),
        Choice.of(edge_labels, edge_attributes, "edge"),
    )
    file = Path(path).expanduser()
    reading = {"label": str(label), "columns": [(c.labels, c.attributes) for c in chosen]}
    return prepare(
        partial(read_dgl_file, file, label, *chosen, need_labels=class_names is None),
        name or file.stem,
        options,
        source={"graphs": content_hash([file]), **reading},
        origin=str(file),
        labels_in=str(file),
        cache=cache,
        vocabulary=vocabulary,
        class_names=class_names,
    )


def read_dgl_file(
    path: Path,
    label: str | None = None,
    nodes: Choice | None = None,
    edges: Choice | None = None,
    need_labels: bool = True,
) -> GraphArrays:
    """Read and check all graphs; `label` names the tensor of their classes where there are several."""
    if not is_dgl_file(path):
        raise DataError(f"{path} is not a file that dgl.save_graphs wrote")
    try:
        graphs, tensors = dgl.load_graphs(str(path))
    except (dgl.DGLError, RuntimeError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be read ({str(error).splitlines()[-1]}); write it again") from None
    try:
        return arrays_of(graphs, _classes(path, tensors, label, need_labels), nodes, edges)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def is_dgl_file(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def _classes(path: Path, tensors: dict[str, torch.Tensor], label: object, need: bool) -> torch.Tensor | None:
    there = ", ".join(tensors) or "none"
    if label is not None and not isinstance(label, str):
        raise ConfigError(f"dataset.label must be the name of one tensor, got {label}")
    if label is None and len(tensors) == 1:
        return next(iter(tensors.values()))
    if label in tensors:
        return tensors[label]
    if not need:
        return None
    if label is None and tensors:
        raise ConfigError(
            f"{path} has several tensors ({there}): say which are the classes, dataset.label=NAME"
        )
    raise DataError(
        f"{path} has no classes{f' {label!r}, only {there}' if label else ''}; "
        "dgl.save_graphs(path, graphs, {'label': tensor}) keeps them"
    )
