"""GraphDataset: all graphs of a dataset as flat tensors; `load_tu` makes one from TU files and caches it."""

import hashlib
import json
import logging
import operator
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import dgl
import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from egin_dgl.data.features import Vocabulary
from egin_dgl.data.sources import DEFAULT_URL, cache_dir, find_raw
from egin_dgl.data.tu import TUArrays, arrange_edges, read_tu
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.files import atomic_path

FORMAT = (
    1  # of the processed cache and the encoding: raised when either changes, so that old files are not read
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DatasetInfo:
    """What a model and a report need to know; the first `*_attributes` feature columns are continuous."""

    name: str
    graphs: int
    classes: int
    node_dim: int
    edge_dim: int
    node_names: tuple[str, ...]
    edge_names: tuple[str, ...]
    class_names: tuple[str, ...]
    node_attributes: int = 0
    edge_attributes: int = 0


@dataclass(frozen=True, eq=False)
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

    def __len__(self) -> int:
        return self.info.graphs

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
        return replace(self, **{key: getattr(self, key).to(device) for key in _TENSORS})

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
        dims = {"node_dim": len(node_names), "edge_dim": len(edge_names)}
        info = replace(self.info, node_names=node_names, edge_names=edge_names, **dims)
        return replace(self, info=info, node_feats=node_feats, edge_feats=edge_feats)

    @property
    def majority_accuracy(self) -> float:
        """The accuracy of always answering the commonest class, below which a model has learnt nothing."""
        known = self.labels[self.labels >= 0]
        return known.bincount().max().item() / len(known) if len(known) else float("nan")


_TENSORS = tuple(field.name for field in fields(GraphDataset) if field.type is torch.Tensor)


@dataclass(frozen=True)
class Options:
    """How raw arrays become a dataset; checked on creation, before anything is searched or downloaded."""

    edges: str = "symmetric"
    self_loops: str = "remove"
    node_features: str = "degree"
    use_edge_features: bool = True

    def __post_init__(self) -> None:
        valid = {"edges": ("symmetric", "as_given"), "self_loops": ("remove", "keep")}
        valid |= {"node_features": ("degree", "constant"), "use_edge_features": (True, False)}
        for option, values in valid.items():
            if getattr(self, option) not in values:
                choices = " or ".join(map(str, values))
                raise ConfigError(f"{option} must be {choices}, got {getattr(self, option)!r}")


def from_arrays(
    arrays: TUArrays,
    name: str,
    options: Options | None = None,
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
    options = options or Options()
    arrays = arrange_edges(arrays, options.edges == "symmetric", options.self_loops == "keep")
    vocabulary = vocabulary or Vocabulary.fit(arrays, options.node_features, options.use_edge_features)
    encoded = vocabulary.encode(arrays)
    notes = arrays.warnings
    for kind, count in (("node", encoded.unseen_node_labels), ("edge", encoded.unseen_edge_labels)):
        notes += (f"{count} {kind} label(s) not in the vocabulary",) if count else ()

    labels = np.full(arrays.graphs, -1)
    if arrays.graph_labels is not None:
        values = np.unique(arrays.graph_labels).tolist()
        class_names = [str(value) for value in values] if class_names is None else class_names
        number = {
            value: class_names.index(str(value)) if str(value) in class_names else -1 for value in values
        }
        labels = np.array([number[value] for value in arrays.graph_labels.tolist()])
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
    return GraphDataset(
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
    )


def _offsets(graph_of: np.ndarray, graphs: int) -> torch.Tensor:
    counts = np.bincount(graph_of, minlength=graphs)
    return torch.from_numpy(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))


def load_tu(
    name: str,
    root: str | os.PathLike | None = None,
    url: str | None = DEFAULT_URL,
    edges: str = "symmetric",
    self_loops: str = "remove",
    node_features: str = "degree",
    use_edge_features: bool = True,
    expect: Mapping[str, int | Sequence[int]] | None = None,
    cache: bool = True,
    vocabulary: Vocabulary | None = None,
    class_names: Sequence[str] | None = None,
) -> GraphDataset:
    """Load a TU dataset, from the processed cache where the same files were prepared with the same options.

    `expect` guards a config against foreign files: graphs, classes, node_dim, edge_dim, each a number or a list of
    accepted ones. `vocabulary` and `class_names` of a training set are for prediction (see `from_arrays`).
    """
    options = Options(edges, self_loops, node_features, use_edge_features)
    if wrong := set(expect or {}) - {"graphs", "classes", "node_dim", "edge_dim"}:
        raise ConfigError(
            f"expect knows graphs, classes, node_dim and edge_dim, not {', '.join(sorted(wrong))}"
        )
    raw = find_raw(name, root, url)
    content = {"format": FORMAT, "raw": raw.digest(), **asdict(options)}
    content |= {
        "vocabulary": vocabulary and vocabulary.to_json(),
        "classes": class_names and list(class_names),
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    path = cache_dir() / "processed" / f"{name}-{digest[:20]}.safetensors"

    dataset = _restore(path, digest, raw.origin) if cache else None
    if dataset is None:
        arrays = read_tu(raw, need_labels=class_names is None)
        reuse = {"vocabulary": vocabulary, "class_names": class_names}
        dataset = from_arrays(arrays, name, options, **reuse, digest=digest, origin=raw.origin)
        if dataset.info.classes < 2:
            only = dataset.info.class_names[0]
            raise DataError(
                f"{raw.path('graph_labels')} has one class only ({only}); there is nothing to learn"
            )
        if cache:
            _store(dataset, path)
    _check(dataset, expect or {}, use_edge_features)
    log.info("%s: %s", name, raw.origin)
    return dataset


def _check(dataset: GraphDataset, expect: Mapping[str, int | Sequence[int]], use_edge_features: bool) -> None:
    for key, value in expect.items():
        if value is None or (key == "edge_dim" and not use_edge_features):
            continue
        accepted = [value] if isinstance(value, int) else list(value)
        if (found := getattr(dataset.info, key)) not in accepted:
            wanted = " or ".join(map(str, accepted))
            raise DataError(
                f"{dataset.info.name}: expected {key} {wanted}, found {found} in {dataset.origin}; "
                "these are other files than the config was written for"
            )


def _checksum(tensors: Mapping[str, torch.Tensor]) -> int:
    """Against damage, not malice: safetensors checks a file's length but not its bytes."""
    total = 0
    for key in _TENSORS:
        total = zlib.crc32(tensors[key].numpy(), total)
    return total


def _store(dataset: GraphDataset, path: Path) -> None:
    tensors = {key: getattr(dataset, key).contiguous() for key in _TENSORS}
    header = {"info": asdict(dataset.info), "digest": dataset.digest, "notes": dataset.notes}
    header |= {"vocabulary": dataset.vocabulary.to_json(), "checksum": _checksum(tensors)}
    try:
        with atomic_path(path) as temporary:
            save_file(tensors, temporary, metadata={"dataset": json.dumps(header)})
    except (OSError, SafetensorError) as error:  # a full or read-only disk costs time, not the run
        log.warning("cannot cache %s: %s", path, error)


def _restore(path: Path, digest: str, origin: str) -> GraphDataset | None:
    if not path.is_file():
        return None
    try:
        with safe_open(path, "pt") as file:
            tensors = {key: file.get_tensor(key) for key in _TENSORS}
            header = json.loads(file.metadata()["dataset"])
        if header["checksum"] != _checksum(tensors) or header["digest"] != digest:
            raise ValueError("checksum does not match")
        info = {
            key: tuple(value) if isinstance(value, list) else value for key, value in header["info"].items()
        }
        notes, vocabulary = tuple(header["notes"]), Vocabulary.from_json(header["vocabulary"])
        for note in notes:  # as when the files were first read
            log.warning(note)
        dataset = GraphDataset(DatasetInfo(**info), **tensors, digest=digest, origin=origin)
        return replace(dataset, vocabulary=vocabulary, notes=notes)
    except (OSError, SafetensorError, DataError, KeyError, TypeError, ValueError) as error:
        log.warning("%s is damaged (%s) and is made again", path, error)
        return None
