"""From a reader's arrays to a dataset, through a cache of prepared tensors; and the loader of TU datasets."""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import TypedDict

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.dataset import TENSORS, DatasetInfo, GraphDataset, GraphOptions, from_arrays
from egin_dgl.data.readers.download import DEFAULT_URL
from egin_dgl.data.readers.search_path import find_raw, naming_the_cache
from egin_dgl.data.readers.tu import read_tu
from egin_dgl.data.tensor_cache import TensorCache
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.options import Count, Directory, ListOf, Url

# Raised when the same files and options give other tensors: runs go on with the data that they began with only.
ENCODING = 2
# Raised when a cache file holds other things, so that old ones are not read.
FORMAT = 1

WORDS = ("ids", "parts", "smiles")  # what a dataset has for each graph that is no number

log = logging.getLogger(__name__)


class Expected(TypedDict, total=False):
    """What a config is written for: sizes, each a number or a list of accepted ones; null: any."""

    graphs: Count | ListOf[Count] | None
    classes: Count | ListOf[Count] | None
    node_dim: Count | ListOf[Count] | None
    edge_dim: Count | ListOf[Count] | None


@naming_the_cache
def load_tu(
    name: str,
    root: Directory | os.PathLike | None = None,
    url: Url | None = DEFAULT_URL,
    edges: Literal["symmetric", "as_given"] = "symmetric",
    self_loops: Literal["remove", "keep"] = "remove",
    node_features: Literal["degree", "constant"] = "degree",
    use_edge_features: bool = True,
    expect: Expected | None = None,
    cache: bool = True,
    vocabulary: Vocabulary | None = None,
    class_names: Sequence[str] | None = None,
) -> GraphDataset:
    """Load a TU dataset, from the processed cache where the same files were prepared with the same options.

    `expect` guards a config against foreign files: graphs, classes, node_dim, edge_dim, each a number or a list of
    accepted ones. `vocabulary` and `class_names` of a training set are for prediction (see `from_arrays`).
    """
    options = GraphOptions(edges, self_loops, node_features, use_edge_features)
    if wrong := set(expect or {}) - {"graphs", "classes", "node_dim", "edge_dim"}:
        raise ConfigError(
            f"expect knows graphs, classes, node_dim and edge_dim, not {', '.join(sorted(wrong))}"
        )
    raw = find_raw(name, root, url)
    dataset = prepare(
        partial(read_tu, raw, need_labels=class_names is None),
        name,
        options,
        source={"raw": raw.digest()},
        origin=raw.origin,
        labels_in=raw.path("graph_labels"),
        cache=cache,
        vocabulary=vocabulary,
        class_names=class_names,
    )
    _check(dataset, expect or {}, use_edge_features)
    return dataset


def prepare(
    read: Callable[[], GraphArrays],
    name: str,
    options: GraphOptions,
    source: dict,
    origin: str,
    labels_in: str,
    cache: bool = True,
    vocabulary: Vocabulary | None = None,
    class_names: Sequence[str] | None = None,
) -> GraphDataset:
    """The dataset of what `read()` gives, kept in the cache under all that it depends on.

    source: a fingerprint of the files and what else `read` depends on.  labels_in: where the classes are, for messages.
    """
    content = {
        "format": ENCODING,
        **source,
        **asdict(options),
        "vocabulary": vocabulary and vocabulary.to_json(),
        "classes": class_names and list(class_names),
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    kept = processed(digest, name)
    dataset = kept.read(partial(_restore, digest=digest, origin=origin)) if cache else None
    if dataset is None:
        dataset = from_arrays(
            read(),
            name,
            options,
            vocabulary=vocabulary,
            class_names=class_names,
            digest=digest,
            origin=origin,
        )
        if dataset.info.classes < 2:
            only = dataset.info.class_names[0]
            raise DataError(f"{labels_in} has one class only ({only}); there is nothing to learn")
        if cache:
            kept.write(*_record(dataset))
    for note in dataset.notes:
        log.warning(note)
    log.info("%s: %s", name, origin)
    return dataset


def processed(digest: str, name: str) -> TensorCache:
    """Where the prepared tensors of a dataset are kept."""
    key = hashlib.sha256(f"{FORMAT} {digest}".encode()).hexdigest()
    return TensorCache.of("processed", key, name)


def content_hash(paths: Sequence[Path]) -> str:
    """sha256 of what files hold."""
    total = hashlib.sha256()
    for path in paths:
        try:
            with open(path, "rb") as file:
                while block := file.read(1 << 20):
                    total.update(block)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from None
        total.update(b"\0")
    return total.hexdigest()


def _check(dataset: GraphDataset, expect: Mapping[str, Any], use_edge_features: bool) -> None:
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


def _record(dataset: GraphDataset) -> tuple[dict[str, Tensor], dict]:
    """What the cache keeps: tensors, and a record."""
    vocabulary = dataset.vocabulary and dataset.vocabulary.to_json()
    record = {"info": asdict(dataset.info), "notes": dataset.notes, "vocabulary": vocabulary}
    record["unseen"] = dict(dataset.unseen)
    tensors = {key: getattr(dataset, key) for key in TENSORS}
    # As bytes of a tensor, since a record has a largest size.
    words = json.dumps({key: getattr(dataset, key) for key in WORDS}).encode()
    return tensors | {"words": torch.frombuffer(bytearray(words), dtype=torch.uint8)}, record


def _restore(tensors: dict[str, Tensor], record: dict, digest: str, origin: str) -> GraphDataset:
    words = json.loads(tensors["words"].numpy().tobytes())
    content: dict[str, Any] = {key: tensors[key] for key in TENSORS}
    content |= {key: tuple(words[key]) for key in WORDS}
    return GraphDataset(
        DatasetInfo.from_dict(record["info"]),
        **content,
        digest=digest,
        origin=origin,
        vocabulary=Vocabulary.from_json(record["vocabulary"]),
        notes=tuple(record["notes"]),
        unseen=record["unseen"],
    )
