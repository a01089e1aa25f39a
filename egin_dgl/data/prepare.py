"""Raw arrays → GraphDataset: arrange edges, encode features and classes; through a cache of prepared datasets."""

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from egin_dgl.data.arrays import GraphArrays, arrange_edges
from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.mmap_dataset import LARGE, mapped_zeros, read_cached, write_cached
from egin_dgl.data.perturb import EdgeFeatures, Structure, perturb_features, perturb_structure
from egin_dgl.data.ragged import offsets_of
from egin_dgl.data.targets import EncodedTargets, drop_unlabelled, encode_targets
from egin_dgl.data.vocabulary import Allocate, Vocabulary, zeros
from egin_dgl.errors import DataError
from egin_dgl.files import regular_file
from egin_dgl.options import Name, Seed, TaskOption, validate_options

# Increase it when the same files and options give other tensors: a run resumes only with the data it started with.
ENCODING_VERSION = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GraphOptions:
    """How raw arrays become a dataset; validated before any file is read.

    Args:
        edges: "symmetric" adds missing reverse edges, "as_given" does not.
        self_loops: "remove" or "keep".
        node_features: Features of nodes without labels and attributes: "degree" (one-hot in-degree) or "constant".
        edge_features: "keep", "constant" (1 on every edge) or "permuted" (among the edges of each graph).
        structure: "keep", "none" (no edges) or "rewired" (degrees kept, features travel with their edges).
        shuffle_seed: Seed of "permuted" and "rewired".
        task: What targets stand for; "auto" decides from their values, see `decide_task`.
    """

    edges: Literal["symmetric", "as_given"] = "symmetric"
    self_loops: Literal["remove", "keep"] = "remove"
    node_features: Literal["degree", "constant"] = "degree"
    edge_features: EdgeFeatures = "keep"
    structure: Structure = "keep"
    shuffle_seed: Seed = 0
    task: TaskOption = "auto"

    def __post_init__(self) -> None:
        validate_options(GraphOptions, vars(self))


def from_arrays(
    arrays: GraphArrays,
    name: str,
    options: GraphOptions | None = None,
    *,
    vocabulary: Vocabulary | None = None,
    targets: EncodedTargets | None = None,
    digest: str = "",
    origin: str = "",
    allocate: Allocate = zeros,
) -> GraphDataset:
    """Encode raw graphs as a dataset, with the vocabulary and targets of a training set or, by default, their own.

    Graphs without any label are left out of a training set. `digest` and `origin` are recorded in the dataset;
    `allocate` makes its feature matrices.
    """
    options = options or GraphOptions()
    arrays = arrays if targets else drop_unlabelled(arrays)
    arrays = arrange_edges(arrays, options.edges == "symmetric", options.self_loops == "keep")
    arrays = perturb_features(arrays, options.edge_features, options.shuffle_seed)
    edges = arrays.edges  # without any edge, the features of edges are the same columns
    arrays = perturb_structure(arrays, options.structure, options.shuffle_seed)
    vocabulary = vocabulary or Vocabulary.fit(arrays, options.node_features, edges)
    encoded = vocabulary.encode(arrays, allocate)
    targets = encode_targets(arrays, options.task, targets)
    info = DatasetInfo(
        name=name,
        graphs=arrays.graphs,
        classes=len(targets.class_names),
        node_dim=encoded.node_feats.shape[1],
        edge_dim=encoded.edge_feats.shape[1],
        node_names=vocabulary.node.names,
        edge_names=vocabulary.edge.names,
        class_names=targets.class_names,
        node_attributes=vocabulary.node.attributes,
        edge_attributes=vocabulary.edge.attributes,
        task=targets.task,
        target_names=targets.target_names,
    )
    dataset = GraphDataset(
        info=info,
        labels=torch.from_numpy(targets.labels),
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
        skipped=arrays.skipped,
    )
    return dataset.with_training_statistics(range(arrays.graphs))


def _offsets(graph_of: np.ndarray, graphs: int) -> torch.Tensor:
    return torch.from_numpy(offsets_of(np.bincount(graph_of, minlength=graphs)))


def prepare(
    read: Callable[[], GraphArrays], name: Name, options: GraphOptions, source: dict, origin: str, cache: bool
) -> GraphDataset:
    """Read and encode a dataset, or load it from the cache if `cache`.

    `source` is everything the result of `read` depends on, such as the hash of a file; `origin` is for people.
    """
    validate_options(prepare, {"name": name})  # it becomes part of a path
    content = {"format": ENCODING_VERSION, **source, **asdict(options)}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    dataset = read_cached(digest, name, origin) if cache else None
    if dataset is None:
        arrays = read()
        try:
            allocate = mapped_zeros if cache else zeros
            dataset = from_arrays(arrays, name, options, digest=digest, origin=origin, allocate=allocate)
        except DataError as error:
            raise DataError(f"{origin}: {error}") from error
        if len(dataset.info.class_names) == 1:
            only = dataset.info.class_names[0]
            raise DataError(f"{origin} has a single class ({only}); training needs at least two")
        if cache:
            write_cached(dataset)
            if (
                max(dataset.node_feats.nbytes, dataset.edge_feats.nbytes) >= LARGE
            ):  # let go of its first pages
                dataset = read_cached(digest, name, origin) or dataset
    for note in dataset.notes:
        log.warning(note)
    log.info("%s: %s", name, origin)
    return dataset


def hash_files(*paths: Path) -> str:
    """sha256 of the contents of files."""
    total = hashlib.sha256()
    for path in paths:
        try:
            total.update(regular_file(path).read_bytes())
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from None
        total.update(b"\0")
    return total.hexdigest()
