"""GraphDataset: all graphs of a dataset as flat tensors."""

import hashlib
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TypeAlias

import dgl
import numpy as np
import torch

from egin_dgl.data.arrays import GraphArrays, arrange_edges, distinct
from egin_dgl.data.ragged import Offsets, offsets_of
from egin_dgl.data.readers.columns import ColumnSelection
from egin_dgl.data.readers.graph_objects import graphs_to_arrays
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import ConfigError, DataError

Indices: TypeAlias = Sequence[int] | np.ndarray | torch.Tensor  # numbers of graphs


@dataclass(frozen=True)
class DatasetInfo:
    """What a model and a report need to know; the first `*_attributes` feature columns are continuous.

    Most models need no more than ``DatasetInfo(node_dim=7, edge_dim=4, classes=2)``.
    """

    node_dim: int
    edge_dim: int
    classes: int
    name: str = ""
    graphs: int = 0
    node_names: tuple[str, ...] = field(default=(), repr=False)
    edge_names: tuple[str, ...] = field(default=(), repr=False)
    class_names: tuple[str, ...] = field(default=(), repr=False)
    node_attributes: int = 0
    edge_attributes: int = 0
    # Of the training graphs, for models that size themselves by them; see `GraphDataset.measured_on`.
    size_percentiles: tuple[int, ...] = field(default=(), repr=False)  # nodes of a graph at 0 %, 1 %, … 100 %
    mean_log_degree: float = 0.0  # mean over nodes of log(in-degree + 1)

    @classmethod
    def from_dict(cls, record: dict) -> "DatasetInfo":
        """The info that `asdict` described, also when JSON made lists of its tuples."""
        return cls(**record | {key: tuple(value) for key, value in record.items() if isinstance(value, list)})


@dataclass(frozen=True, eq=False, repr=False)
class GraphDataset:
    """G graphs with N nodes and E edges in total, laid end to end.

    Graph i has the nodes node_offsets[i]:node_offsets[i+1] and the edges edge_offsets[i]:edge_offsets[i+1]; src and
    dst number nodes across the whole dataset. A batch is then a few index operations, on the CPU or on the GPU.
    labels are −1 where the class is not known (new graphs to predict).
    """

    info: DatasetInfo
    labels: torch.Tensor  # (G,) int64
    node_offsets: torch.Tensor  # (G + 1,) int64
    edge_offsets: torch.Tensor  # (G + 1,) int64
    src: torch.Tensor  # (E,) int64
    dst: torch.Tensor  # (E,) int64
    node_feats: torch.Tensor  # (N, D) float32
    edge_feats: torch.Tensor  # (E, Q) float32
    digest: str = ""
    origin: str = ""
    vocabulary: Vocabulary | None = None
    notes: tuple[str, ...] = ()  # what reading changed in the data: self-loops removed, graphs dropped
    ids: tuple[str, ...] = ()  # (G,) what each graph is called where it comes from
    unseen: Mapping[str, int] = field(default_factory=dict)  # labels not in a given vocabulary, and how often
    parts: tuple[str, ...] = ()  # (G,) the part of a split each graph was given to, where that was said
    smiles: tuple[str, ...] = ()  # (G,) of molecules

    @classmethod
    def from_graphs(
        cls,
        graphs: Sequence,
        labels: object = None,
        *,
        node_labels: Sequence[str] | None = None,
        node_attributes: Sequence[str] | None = None,
        edge_labels: Sequence[str] | None = None,
        edge_attributes: Sequence[str] | None = None,
        ids: Sequence | None = None,
        name: str = "graphs",
        edges: str = "as_given",
        self_loops: str = "remove",
        node_features: str = "degree",
        use_edge_features: bool = True,
        vocabulary: Vocabulary | None = None,
        class_names: Sequence[str] | None = None,
    ) -> "GraphDataset":
        """A dataset of DGLGraphs, networkx graphs or PyG's Data, with one class for each.

        Fields of nodes and edges are used by name, as is said; all of them if nothing is said: reals are attributes,
        words, whole numbers and truth values labels. A field of k columns is k of them. labels may be words, numbers
        or truth values; without them the classes are those of (graph, class) pairs or PyG's y, or not known.
        `vocabulary` and `class_names` of a training set are for prediction, as in `from_arrays`.
        """
        options = GraphOptions(edges, self_loops, node_features, use_edge_features)
        chosen = (
            ColumnSelection.of(node_labels, node_attributes, "node"),
            ColumnSelection.of(edge_labels, edge_attributes, "edge"),
        )
        arrays = graphs_to_arrays(graphs, labels, *chosen, ids=ids)
        if class_names is None and arrays.graph_labels is not None:
            unknown = [i for i, label in zip(arrays.ids, arrays.graph_labels, strict=True) if label is None]
            if unknown:
                raise DataError(
                    f"{len(unknown)} graph(s) have no label, the first is {unknown[0]}; leave them out"
                )
        dataset = from_arrays(
            arrays,
            name,
            options,
            vocabulary=vocabulary,
            class_names=class_names,
            origin=f"{len(arrays.ids)} graphs",
        )
        return replace(dataset, digest=fingerprint(dataset))

    def __len__(self) -> int:
        return self.info.graphs

    def __repr__(self) -> str:
        info, nodes, edges = self.info, len(self.node_feats), len(self.src)
        sizes = f"{info.graphs} graphs, {nodes} nodes, {edges} edges, {info.classes} classes"
        return f"GraphDataset({info.name!r}: {sizes}, node_dim={info.node_dim}, edge_dim={info.edge_dim})"

    def __getitem__(self, index: int) -> tuple[dgl.DGLGraph, torch.Tensor]:
        """Graph `index` with ndata["feat"] and edata["feat"], and its label."""
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"graph {index} of {len(self)}")
        index %= len(self)
        first, last = self.node_offsets[index : index + 2].tolist()
        edges = slice(*self.edge_offsets[index : index + 2].tolist())
        graph = dgl.graph((self.src[edges] - first, self.dst[edges] - first), num_nodes=last - first)
        graph.ndata["feat"] = self.node_feats[first:last]
        graph.edata["feat"] = self.edge_feats[edges]
        return graph, self.labels[index]

    def to(self, device: str | torch.device) -> "GraphDataset":
        return replace(self, **{key: getattr(self, key).to(device) for key in TENSORS})

    def with_features(
        self,
        node_feats: torch.Tensor | None = None,
        edge_feats: torch.Tensor | None = None,
        node_names: Sequence[str] | None = None,
        edge_names: Sequence[str] | None = None,
    ) -> "GraphDataset":
        """The same graphs with other features; names are needed where the number of columns changes."""
        node_feats = self.node_feats if node_feats is None else node_feats
        edge_feats = self.edge_feats if edge_feats is None else edge_feats
        node_names = tuple(self.info.node_names if node_names is None else node_names)
        edge_names = tuple(self.info.edge_names if edge_names is None else edge_names)
        for feats, rows, names in (
            (node_feats, self.node_feats, node_names),
            (edge_feats, self.edge_feats, edge_names),
        ):
            if feats.shape != (len(rows), len(names)):
                raise ValueError(f"features must be {(len(rows), len(names))}, got {tuple(feats.shape)}")
        info = replace(
            self.info,
            node_names=node_names,
            edge_names=edge_names,
            node_dim=len(node_names),
            edge_dim=len(edge_names),
        )
        return replace(self, info=info, node_feats=node_feats, edge_feats=edge_feats)

    def measured_on(self, graphs: Indices) -> "GraphDataset":
        """The same dataset, whose info tells the sizes and degrees of these graphs only, those of a training part."""
        sizes = self.node_offsets.diff().cpu()
        chosen = torch.zeros(len(sizes), dtype=torch.bool)
        chosen[torch.as_tensor(graphs, dtype=torch.int64)] = True
        if not chosen.any():
            return self
        degrees = self.dst.bincount(minlength=int(sizes.sum())).cpu()[chosen.repeat_interleave(sizes)]
        # The largest size that at least 100 % − p of the graphs reach, and never a size between two graphs.
        ordered = sizes[chosen].sort().values.tolist()
        percentiles = [ordered[min(p * len(ordered) // 100, len(ordered) - 1)] for p in range(101)]
        info = replace(
            self.info,
            size_percentiles=tuple(percentiles),
            mean_log_degree=(degrees + 1).double().log().mean().item(),
        )
        return replace(self, info=info)

    @cached_property
    def node_rows(self) -> Offsets:
        """The range of nodes of each graph, for batches."""
        return Offsets(self.node_offsets)

    @cached_property
    def edge_rows(self) -> Offsets:
        """The range of edges of each graph, for batches."""
        return Offsets(self.edge_offsets)

    @property
    def names(self) -> Sequence[str]:
        """What each graph is called: its id where it came with one, else its number."""
        return self.ids or [str(number) for number in range(len(self))]

    @property
    def majority_accuracy(self) -> float:
        """The accuracy of always answering the commonest class, below which a model has learnt nothing."""
        known = self.labels[self.labels >= 0]
        return known.bincount().max().item() / len(known) if len(known) else float("nan")


TENSORS = tuple(field.name for field in fields(GraphDataset) if field.type is torch.Tensor)


@dataclass(frozen=True)
class GraphOptions:
    """How raw arrays become a dataset; checked on creation, before anything is searched or downloaded."""

    edges: str = "symmetric"
    self_loops: str = "remove"
    node_features: str = "degree"
    use_edge_features: bool = True

    def __post_init__(self) -> None:
        valid: dict[str, tuple[str | bool, ...]] = {
            "edges": ("symmetric", "as_given"),
            "self_loops": ("remove", "keep"),
            "node_features": ("degree", "constant"),
            "use_edge_features": (True, False),
        }
        for option, values in valid.items():
            if getattr(self, option) not in values:
                choices = " or ".join(map(str, values))
                raise ConfigError(f"{option} must be {choices}, got {getattr(self, option)!r}")


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
    """Arrange edges, encode features and classes, lay out flat tensors.

    With the `vocabulary` and `class_names` of a training set, new graphs get the vectors and class numbers that a
    trained model expects; a class it does not know is −1.
    """
    options = options or GraphOptions()
    arrays = arrange_edges(arrays, options.edges == "symmetric", options.self_loops == "keep")
    vocabulary = vocabulary or Vocabulary.fit(arrays, options.node_features, options.use_edge_features)
    encoded = vocabulary.encode(arrays)
    notes = (*arrays.warnings, *encoded.notes)
    for kind, unseen in (("node", encoded.unseen_node_labels), ("edge", encoded.unseen_edge_labels)):
        if unseen:
            named = ", ".join(f"{name} ({count})" for name, count in list(unseen.items())[:10])
            more = f" and {len(unseen) - 10} others" if len(unseen) > 10 else ""
            notes += (f"{sum(unseen.values())} {kind} label(s) not in the vocabulary: {named}{more}",)

    labels = np.full(arrays.graphs, -1)
    if arrays.graph_labels is not None:
        known = np.array([value is not None for value in arrays.graph_labels.tolist()], dtype=bool)
        values, which = distinct(arrays.graph_labels[known])
        class_names = list(dict.fromkeys(map(str, values))) if class_names is None else class_names
        number = {name: i for i, name in enumerate(class_names)}
        labels[known] = np.array([number.get(str(value), -1) for value in values], dtype=np.int64)[which]
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
        labels=torch.from_numpy(labels.astype(np.int64)),
        node_offsets=_offsets(arrays.node_graph, arrays.graphs),
        edge_offsets=_offsets(arrays.node_graph[arrays.src], arrays.graphs),
        src=torch.from_numpy(arrays.src),
        dst=torch.from_numpy(arrays.dst),
        node_feats=torch.from_numpy(encoded.node_feats),
        edge_feats=torch.from_numpy(encoded.edge_feats),
        digest=digest,
        origin=origin,
        vocabulary=vocabulary,
        notes=notes,
        ids=arrays.ids,
        unseen=encoded.unseen,
        parts=arrays.parts,
        smiles=arrays.smiles,
    )
    return dataset.measured_on(range(arrays.graphs))


def fingerprint(dataset: GraphDataset) -> str:
    """sha256 of all that training sees of graphs that are in no file."""
    total = hashlib.sha256(json.dumps([asdict(dataset.info), dataset.ids]).encode())
    for key in TENSORS:
        total.update(getattr(dataset, key).cpu().numpy().tobytes())
    return total.hexdigest()


def _offsets(graph_of: np.ndarray, graphs: int) -> torch.Tensor:
    counts = np.bincount(graph_of, minlength=graphs)
    return torch.from_numpy(offsets_of(counts))
