"""GraphDataset: all graphs of a dataset as flat tensors, and DatasetInfo: its sizes and names."""

import hashlib
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import torch

from egin_dgl.backend import import_dgl
from egin_dgl.data.ragged import Offsets
from egin_dgl.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from dgl import DGLGraph

Indices: TypeAlias = Sequence[int] | np.ndarray | torch.Tensor  # numbers of graphs
TaskName = Literal["multiclass", "multilabel", "regression"]


@dataclass(frozen=True)
class DatasetInfo:
    """Sizes and names of a dataset. The first `*_attributes` feature columns are continuous, the others one-hot.

    >>> DatasetInfo(node_dim=7, edge_dim=4, classes=2)
    DatasetInfo(node_dim=7, edge_dim=4, classes=2, name='', graphs=0, node_attributes=0, edge_attributes=0, mean_log_degree=0.0)
    """

    node_dim: int  # number of node features, D
    edge_dim: int  # number of edge features, Q
    classes: int = 0  # number of classes, C; 0 unless the task is multiclass
    name: str = ""
    graphs: int = 0  # number of graphs, G
    node_names: tuple[str, ...] = field(default=(), repr=False)  # of the feature columns
    edge_names: tuple[str, ...] = field(default=(), repr=False)
    class_names: tuple[str, ...] = field(default=(), repr=False)
    node_attributes: int = 0  # number of continuous columns
    edge_attributes: int = 0
    size_percentiles: tuple[int, ...] = field(
        default=(), repr=False
    )  # nodes of training graphs at 0 %, 1 %, … 100 %
    mean_log_degree: float = 0.0  # mean of log(in-degree + 1) over the nodes of the training graphs
    task: TaskName = field(default="multiclass", repr=False)
    target_names: tuple[str, ...] = field(default=(), repr=False)  # of the columns of labels

    @property
    def outputs(self) -> int:
        """Number of outputs of a model: one per class, or one per target."""
        return self.classes or len(self.target_names)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the classes, or of the targets."""
        return self.class_names if self.classes else self.target_names

    @classmethod
    def from_dict(cls, record: dict) -> "DatasetInfo":
        """Restore what `dataclasses.asdict` returned; JSON turns its tuples into lists."""
        return cls(**record | {key: tuple(value) for key, value in record.items() if isinstance(value, list)})


@dataclass(frozen=True, eq=False, repr=False)
class GraphDataset:
    """G graphs with N nodes and E edges in total, concatenated into flat tensors.

    Graph i has the nodes ``node_offsets[i]:node_offsets[i + 1]`` and the edges ``edge_offsets[i]:edge_offsets[i + 1]``.
    A batch is a few index operations, on the CPU or on the GPU.
    """

    info: DatasetInfo
    labels: (
        torch.Tensor
    )  # (G,) int64, class of each graph, -1 where unknown; or (G, T) float64, NaN where missing
    node_offsets: torch.Tensor  # (G + 1,) int64, first node of each graph
    edge_offsets: torch.Tensor  # (G + 1,) int64, first edge of each graph
    src: torch.Tensor  # (E,) int64, ends of each edge, numbered across the dataset
    dst: torch.Tensor
    node_feats: torch.Tensor  # (N, D) float32
    edge_feats: torch.Tensor  # (E, Q) float32
    digest: str = ""  # sha256 of everything the dataset was made from; empty where unknown
    origin: str = ""  # where the data come from, for people
    vocabulary: Vocabulary | None = None  # encodes new graphs as these were encoded
    notes: tuple[str, ...] = ()  # what reading changed in the data, such as self-loops removed
    ids: tuple[str, ...] = ()  # (G,) name of each graph in its source
    unseen: Mapping[str, int] = field(
        default_factory=dict
    )  # labels that are not in a given vocabulary, counted
    splits: tuple[str, ...] = ()  # (G,) split name or fold number of each graph, where the source has one
    smiles: tuple[str, ...] = ()  # (G,) SMILES string of each molecule
    skipped: tuple[
        str, ...
    ] = ()  # entries of the source that could not be read, each with its place and reason
    training: Indices | None = None  # the training graphs, which decide how batches are computed; None: all
    weights: torch.Tensor | None = None  # (G,) of the graphs in the training loss; None: equal

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
        edges: Literal["symmetric", "as_given"] = "as_given",
        self_loops: Literal["remove", "keep"] = "remove",
        node_features: Literal["degree", "constant"] = "degree",
        edge_features: Literal["keep", "constant", "permuted"] = "keep",
        structure: Literal["keep", "none", "rewired"] = "keep",
        shuffle_seed: int = 0,
        task: Literal["auto", "multiclass", "multilabel", "regression"] = "auto",
        vocabulary: Vocabulary | None = None,
        info: DatasetInfo | None = None,
    ) -> "GraphDataset":
        """Make a dataset of DGL, networkx or PyG graphs, or of SMILES strings.

        Args:
            graphs: Graphs of one library, or (graph, label) pairs.
            labels: Class of each graph (string, integer or boolean), number, or row of numbers, NaN or None where missing.
                Default: the label of each pair, PyG's ``y``, or unknown.
            node_labels, edge_labels: Fields to use as categorical labels, one-hot encoded.
            node_attributes, edge_attributes: Fields to use as continuous attributes. If neither labels nor attributes
                are given, all fields are used: real numbers are attributes, the others labels. A field of k columns
                counts as k fields.
            ids: Name of each graph.
            name: Name of the dataset.
            edges, self_loops, node_features, edge_features, structure, shuffle_seed: See `GraphOptions`.
            task: What the labels stand for. Default: decided from their values, see `decide_task`.
            vocabulary, info: Those of a training set, to encode new graphs as it was encoded.

        >>> import networkx as nx
        >>> graph = nx.cycle_graph(3)
        >>> nx.set_edge_attributes(graph, "single", "bond")
        >>> GraphDataset.from_graphs([graph, nx.Graph([(0, 1, {"bond": "double"})])], ["ring", "chain"])
        GraphDataset('graphs': 2 graphs, 5 nodes, 8 edges, 2 classes, node_dim=2, edge_dim=2)
        """
        from egin_dgl.data.prepare import GraphOptions, from_arrays  # it needs this class
        from egin_dgl.data.readers.columns import select_columns
        from egin_dgl.data.readers.graph_objects import graphs_to_arrays
        from egin_dgl.data.targets import encoded_like

        options = GraphOptions(edges, self_loops, node_features, edge_features, structure, shuffle_seed, task)
        columns = select_columns(node_labels, node_attributes, edge_labels, edge_attributes)
        arrays = graphs_to_arrays(graphs, labels, columns, ids)
        dataset = from_arrays(
            arrays, name, options, vocabulary=vocabulary, targets=encoded_like(info) if info else None
        )
        total = hashlib.sha256(json.dumps([asdict(dataset.info), dataset.ids]).encode())
        for key in TENSORS:
            total.update(getattr(dataset, key).numpy().tobytes())
        return replace(dataset, digest=total.hexdigest(), origin=f"{arrays.graphs} graphs")

    def __len__(self) -> int:
        return self.info.graphs

    def __repr__(self) -> str:
        info, nodes, edges = self.info, len(self.node_feats), len(self.src)
        targets = f"{info.classes} classes" if info.classes else f"{len(info.target_names)} targets"
        sizes = f"{info.graphs} graphs, {nodes} nodes, {edges} edges, {targets}"
        return f"GraphDataset({info.name!r}: {sizes}, node_dim={info.node_dim}, edge_dim={info.edge_dim})"

    def __getitem__(self, index: int) -> tuple["DGLGraph", torch.Tensor]:
        """Graph `index` as a DGLGraph with ``ndata["feat"]`` and ``edata["feat"]``, and its label."""
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"graph {index} of {len(self)}")
        index %= len(self)
        first, last = self.node_offsets[index : index + 2].tolist()
        edges = slice(*self.edge_offsets[index : index + 2].tolist())
        graph = import_dgl().graph((self.src[edges] - first, self.dst[edges] - first), num_nodes=last - first)
        graph.ndata["feat"] = self.node_feats[first:last]
        graph.edata["feat"] = self.edge_feats[edges]
        return graph, self.labels[index]

    def to(self, device: str | torch.device) -> "GraphDataset":
        """The same dataset with its tensors on another device; copies to a GPU do not wait for each other."""
        tensors = {key: getattr(self, key) for key in TENSORS}
        if torch.device(device).type == "cuda":
            tensors = {key: t if t.is_cuda else t.pin_memory() for key, t in tensors.items()}
        return replace(self, **{key: t.to(device, non_blocking=True) for key, t in tensors.items()})

    def with_features(
        self,
        node_feats: torch.Tensor | None = None,
        edge_feats: torch.Tensor | None = None,
        node_names: Sequence[str] | None = None,
        edge_names: Sequence[str] | None = None,
    ) -> "GraphDataset":
        """The same graphs with other features; pass names where the number of columns changes."""
        feats: dict[str, Any] = {}
        info: dict[str, Any] = {}
        for side, given, names in (("node", node_feats, node_names), ("edge", edge_feats, edge_names)):
            old = getattr(self, f"{side}_feats")
            new = old if given is None else given
            columns = tuple(getattr(self.info, f"{side}_names") if names is None else names)
            if new.shape != (len(old), len(columns)):
                raise ValueError(f"features must be {(len(old), len(columns))}, got {tuple(new.shape)}")
            feats[f"{side}_feats"] = new
            info |= {f"{side}_names": columns, f"{side}_dim": len(columns)}
        return replace(self, info=replace(self.info, **info), **feats)

    def with_training_statistics(self, train_indices: Indices) -> "GraphDataset":
        """The same dataset with these training graphs; sizes and degrees in its info are theirs only."""
        sizes = self.node_offsets.diff().cpu()
        chosen = torch.zeros(len(sizes), dtype=torch.bool)
        chosen[torch.as_tensor(train_indices, dtype=torch.int64)] = True
        if not chosen.any():
            return self
        degrees = self.dst.bincount(minlength=int(sizes.sum())).cpu()[chosen.repeat_interleave(sizes)]
        # A percentile is the size of a graph, never a number between two sizes.
        ordered = sizes[chosen].sort().values.tolist()
        percentiles = [ordered[min(p * len(ordered) // 100, len(ordered) - 1)] for p in range(101)]
        info = replace(
            self.info,
            size_percentiles=tuple(percentiles),
            mean_log_degree=(degrees + 1).double().log().mean().item(),
        )
        return replace(self, info=info, training=train_indices)

    @cached_property
    def node_rows(self) -> Offsets:
        """The range of nodes of each graph, for batches."""
        return Offsets(self.node_offsets)

    @cached_property
    def edge_rows(self) -> Offsets:
        """The range of edges of each graph, for batches."""
        return Offsets(self.edge_offsets)

    @cached_property
    def looped_nodes(self) -> np.ndarray:
        """(G,) nodes of each graph that have a self-loop, on the host."""
        loops = (self.src[self.src == self.dst]).unique().cpu()
        graphs = np.searchsorted(self.node_rows.on_host, loops.numpy(), side="right") - 1
        return np.bincount(graphs, minlength=len(self))

    @property
    def names(self) -> Sequence[str]:
        """Name of each graph: its id, else its number."""
        return self.ids or [str(number) for number in range(len(self))]


TENSORS = tuple(field.name for field in fields(GraphDataset) if field.type is torch.Tensor)
