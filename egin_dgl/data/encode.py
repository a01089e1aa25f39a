"""Raw arrays → GraphDataset: arrange edges, encode features and classes."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch

from egin_dgl.data.arrays import GraphArrays, arrange_edges, unique_labels
from egin_dgl.data.dataset import TENSORS, GraphDataset
from egin_dgl.data.dataset_info import DatasetInfo
from egin_dgl.data.ragged import offsets_of
from egin_dgl.data.readers.columns import ColumnSelection
from egin_dgl.data.readers.graph_lists import graphs_to_arrays
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import ConfigError, DataError

CHOICES: dict[str, tuple[str | bool, ...]] = {
    "edges": ("symmetric", "as_given"),
    "self_loops": ("remove", "keep"),
    "node_features": ("degree", "constant"),
    "use_edge_features": (True, False),
}


@dataclass(frozen=True)
class GraphOptions:
    """How raw arrays become a dataset; validated before any file is read.

    Args:
        edges: "symmetric" adds missing reverse edges, "as_given" does not.
        self_loops: "remove" or "keep".
        node_features: Features of nodes without labels and attributes: "degree" (one-hot in-degree) or "constant".
        use_edge_features: False gives every edge the constant feature 1.
    """

    edges: str = "symmetric"
    self_loops: str = "remove"
    node_features: str = "degree"
    use_edge_features: bool = True

    def __post_init__(self) -> None:
        for option, values in CHOICES.items():
            if (value := getattr(self, option)) not in values:
                raise ConfigError(f"{option} must be {' or '.join(map(str, values))}, got {value!r}")


def from_arrays(
    arrays: GraphArrays,
    name: str,
    options: GraphOptions | None = None,
    *,
    vocabulary: Vocabulary | None = None,
    class_names: Sequence[str] | None = None,
    digest: str = "",
    origin: str = "",
) -> GraphDataset:
    """Encode raw graphs as a dataset.

    Args:
        arrays: The raw graphs.
        name: Name of the dataset.
        options: Default: ``GraphOptions()``.
        vocabulary: Vocabulary of a training set; default: fitted on these graphs.
        class_names: Classes of a training set; other classes get the label -1. Default: those that occur.
        digest, origin: Recorded in the dataset.
    """
    options = options or GraphOptions()
    arrays = arrange_edges(arrays, options.edges == "symmetric", options.self_loops == "keep")
    vocabulary = vocabulary or Vocabulary.fit(arrays, options.node_features, options.use_edge_features)
    encoded = vocabulary.encode(arrays)
    labels = np.full(arrays.graphs, -1, dtype=np.int64)
    if arrays.graph_labels is not None:
        known = np.array([value is not None for value in arrays.graph_labels.tolist()], dtype=bool)
        values, index = unique_labels(arrays.graph_labels[known])
        class_names = list(dict.fromkeys(map(str, values))) if class_names is None else class_names
        number = {name: i for i, name in enumerate(class_names)}
        labels[known] = np.array([number.get(str(value), -1) for value in values], dtype=np.int64)[index]
    info = DatasetInfo(
        name=name,
        graphs=arrays.graphs,
        classes=len(class_names or ()),
        node_dim=encoded.node_feats.shape[1],
        edge_dim=encoded.edge_feats.shape[1],
        node_names=vocabulary.node.names,
        edge_names=vocabulary.edge.names,
        class_names=tuple(class_names or ()),
        node_attributes=vocabulary.node.attributes,
        edge_attributes=vocabulary.edge.attributes,
    )
    dataset = GraphDataset(
        info=info,
        labels=torch.from_numpy(labels),
        node_offsets=_offsets(arrays.node_graph, arrays.graphs),
        edge_offsets=_offsets(arrays.node_graph[arrays.src], arrays.graphs),
        src=torch.from_numpy(arrays.src),
        dst=torch.from_numpy(arrays.dst),
        node_feats=torch.from_numpy(encoded.node_feats),
        edge_feats=torch.from_numpy(encoded.edge_feats),
        digest=digest,
        origin=origin,
        vocabulary=vocabulary,
        notes=(*arrays.warnings, *encoded.notes),
        ids=arrays.ids,
        unseen=encoded.unseen,
        splits=arrays.splits,
        smiles=arrays.smiles,
    )
    return dataset.with_training_statistics(range(arrays.graphs))


def encode_graphs(
    graphs: Sequence,
    labels: object,
    columns: tuple[ColumnSelection, ColumnSelection],
    ids: Sequence | None,
    name: str,
    options: GraphOptions,
    vocabulary: Vocabulary | None,
    class_names: Sequence[str] | None,
) -> GraphDataset:
    """The dataset of graph objects; see `GraphDataset.from_graphs`. Its digest covers its tensors and names."""
    arrays = graphs_to_arrays(graphs, labels, columns, ids=ids)
    if class_names is None and arrays.graph_labels is not None:
        unlabeled = [i for i, label in zip(arrays.ids, arrays.graph_labels, strict=True) if label is None]
        if unlabeled:
            raise DataError(f"{len(unlabeled)} graph(s) have no label, first: {unlabeled[0]}; remove them")
    origin = f"{arrays.graphs} graphs"
    dataset = from_arrays(
        arrays, name, options, vocabulary=vocabulary, class_names=class_names, origin=origin
    )
    total = hashlib.sha256(json.dumps([asdict(dataset.info), dataset.ids]).encode())
    for key in TENSORS:
        total.update(getattr(dataset, key).numpy().tobytes())
    return replace(dataset, digest=total.hexdigest())


def _offsets(graph_of: np.ndarray, graphs: int) -> torch.Tensor:
    return torch.from_numpy(offsets_of(np.bincount(graph_of, minlength=graphs)))
