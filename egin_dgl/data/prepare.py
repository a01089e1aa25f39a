"""From a reader's arrays to a dataset, through a cache of prepared tensors."""

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.dataset import TENSORS, GraphDataset
from egin_dgl.data.dataset_info import DatasetInfo
from egin_dgl.data.encode import GraphOptions, from_arrays
from egin_dgl.data.tensor_cache import TensorCache
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import DataError

# Increase it when the same files and options give other tensors: a run resumes only with the data it started with.
ENCODING_VERSION = 2
# Increase it when a cache file has another layout.
CACHE_VERSION = 2

STRING_FIELDS = ("ids", "splits", "smiles")  # one string for each graph

log = logging.getLogger(__name__)


def prepare(
    read: Callable[[], GraphArrays],
    name: str,
    options: GraphOptions,
    *,
    source: dict,
    origin: str,
    labels_in: str,
    cache: bool = True,
) -> GraphDataset:
    """Read and encode a dataset, or load it from the cache.

    Args:
        read: Reads the raw graphs.
        name: Name of the dataset.
        options: How raw graphs become a dataset.
        source: Everything the result of `read` depends on, such as the hash of a file.
        origin: Where the data come from, for people.
        labels_in: Where the classes come from, for messages.
        cache: False neither reads nor writes the cache.
    """
    content = {"format": ENCODING_VERSION, **source, **asdict(options)}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    entry = cache_entry(digest, name)
    dataset = entry.read(partial(_restore, digest=digest, origin=origin)) if cache else None
    if dataset is None:
        dataset = from_arrays(read(), name, options, digest=digest, origin=origin)
        if dataset.info.classes < 2:
            only = dataset.info.class_names[0]
            raise DataError(f"{labels_in} has a single class ({only}); training needs at least two")
        if cache:
            entry.write(*_to_record(dataset))
    for note in dataset.notes:
        log.warning(note)
    log.info("%s: %s", name, origin)
    return dataset


def cache_entry(digest: str, name: str) -> TensorCache:
    """The cache file of a prepared dataset."""
    key = hashlib.sha256(f"{CACHE_VERSION} {digest}".encode()).hexdigest()
    return TensorCache.for_key("processed", key, name)


def hash_files(paths: Sequence[Path]) -> str:
    """sha256 of the contents of files."""
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


def _to_record(dataset: GraphDataset) -> tuple[dict[str, Tensor], dict]:
    """Tensors and a JSON record, for the cache."""
    record = {
        "info": asdict(dataset.info),
        "notes": dataset.notes,
        "vocabulary": dataset.vocabulary and dataset.vocabulary.to_json(),
        "unseen": dict(dataset.unseen),
    }
    tensors = {key: getattr(dataset, key) for key in TENSORS}
    # Strings are stored as the bytes of a tensor: safetensors limits the size of a header.
    strings = json.dumps({key: getattr(dataset, key) for key in STRING_FIELDS}).encode()
    return tensors | {"strings": torch.frombuffer(bytearray(strings), dtype=torch.uint8)}, record


def _restore(tensors: dict[str, Tensor], record: dict, digest: str, origin: str) -> GraphDataset:
    strings = json.loads(tensors["strings"].numpy().tobytes())
    content: dict[str, Any] = {key: tensors[key] for key in TENSORS}
    content |= {key: tuple(strings[key]) for key in STRING_FIELDS}
    return GraphDataset(
        DatasetInfo.from_dict(record["info"]),
        **content,
        digest=digest,
        origin=origin,
        vocabulary=Vocabulary.from_json(record["vocabulary"]),
        notes=tuple(record["notes"]),
        unseen=record["unseen"],
    )
