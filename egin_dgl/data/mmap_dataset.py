"""Datasets in memory-mapped files: the cache of prepared datasets, and datasets shared with worker processes.

Tensors sent to a process go through /dev/shm, which a container may limit to 64 MB. The pages of a mapped file are in
memory once, however many processes read them.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from egin_dgl.data.dataset import TENSORS, DatasetInfo, GraphDataset
from egin_dgl.data.readers.search_path import cache_dir
from egin_dgl.data.tensor_file import checksum, map_tensors, save_tensors, write_tensors
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import DataError, StorageError
from egin_dgl.files import storage_errors, temporary_sibling

LARGE = 1 << 26  # bytes of a feature matrix
CACHE_VERSION = 4  # increase it when a cache file has another layout
HEADER = "cache"  # one metadata entry only: safetensors writes several in arbitrary order
TEXT_FIELDS = ("notes", "ids", "splits", "smiles", "skipped")

log = logging.getLogger(__name__)


def cache_file(digest: str, name: str) -> Path:
    """The cache file of a prepared dataset; its name helps people only."""
    key = hashlib.sha256(f"{CACHE_VERSION} {digest}".encode()).hexdigest()
    return cache_dir() / "processed" / f"{name}-{key[:20]}.safetensors"


def mapped_zeros(shape: tuple[int, int]) -> np.ndarray:
    """A matrix of zeros, float32; a large one in the pages of a nameless file: it need not fit into memory."""
    if (size := 4 * shape[0] * shape[1]) < LARGE:
        return np.zeros(shape, dtype=np.float32)
    directory = cache_dir() / "processed"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=directory) as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error here, and later a signal
            return np.memmap(file, np.float32, "r+", shape=shape)
    except OSError as error:
        log.warning("features of %d MB are computed in memory: %s: %s", size >> 20, directory, error.strerror)
        return np.zeros(shape, dtype=np.float32)


def write_cached(dataset: GraphDataset) -> None:
    """Store a dataset in the cache; a full disk is a warning, not an error."""
    record: dict[str, Any] = {key: getattr(dataset, key) for key in TEXT_FIELDS}
    record |= {
        "info": asdict(dataset.info),
        "vocabulary": dataset.vocabulary and dataset.vocabulary.to_json(),
    }
    # As the bytes of a tensor: safetensors limits the size of a header.
    text = torch.frombuffer(bytearray(json.dumps(record).encode()), dtype=torch.uint8)
    tensors = {name: getattr(dataset, name) for name in TENSORS} | {"record": text}
    header = {"digest": dataset.digest, "crc32": checksum(tensors, {})}
    try:
        write_tensors(cache_file(dataset.digest, dataset.info.name), tensors, {HEADER: json.dumps(header)})
    except StorageError as error:
        log.warning("%s; it will be rebuilt next time", error)


def read_cached(digest: str, name: str, origin: str) -> GraphDataset | None:
    """The dataset with this digest; None if the cache has no valid file of it."""
    file = cache_file(digest, name)
    try:
        if not file.is_file():
            return None
        tensors, metadata = map_tensors(file)
        if json.loads(metadata[HEADER]) != {"digest": digest, "crc32": checksum(tensors, {})}:
            raise ValueError("checksum does not match")
        record = json.loads(tensors.pop("record").numpy().tobytes())
        content: dict[str, Any] = tensors | {key: tuple(record[key]) for key in TEXT_FIELDS}
        info, vocabulary = DatasetInfo.from_dict(record["info"]), Vocabulary.from_json(record["vocabulary"])
        return GraphDataset(info, **content, digest=digest, origin=origin, vocabulary=vocabulary)
    except (OSError, SafetensorError, DataError, KeyError, TypeError, ValueError) as error:
        log.warning("%s is damaged (%s) and will be rebuilt", file, error)
        return None


@dataclass(frozen=True)
class MmapDataset:
    """A picklable reference to a dataset: the file of its tensors, and its other fields."""

    file: Path
    other_fields: dict[str, Any]

    def open(self) -> GraphDataset:
        """The dataset, with its tensors mapped from the file."""
        try:
            found, _ = map_tensors(self.file)  # a cache file has a further tensor
            tensors: dict[str, Any] = {name: found[name] for name in TENSORS}
        except (OSError, SafetensorError, KeyError) as error:
            raise DataError(f"cannot read the prepared data in {self.file}: {error}") from error
        return GraphDataset(**tensors, **self.other_fields)


@contextmanager
def mapped(dataset: GraphDataset, directory: Path) -> Iterator[MmapDataset]:
    """Map a dataset from its cache file, or from a temporary file in `directory` that is removed at the end."""
    others = {f.name: getattr(dataset, f.name) for f in fields(GraphDataset) if f.name not in TENSORS}
    tensors = {name: getattr(dataset, name) for name in TENSORS}
    cached = MmapDataset(cache_file(dataset.digest, dataset.info.name).absolute(), others)
    try:
        found = cached.open()
    except DataError:
        found = None
    if found and all(torch.equal(tensors[name], getattr(found, name)) for name in TENSORS):
        yield cached
        return
    with temporary_sibling(directory.absolute() / "dataset.safetensors") as temporary:
        with storage_errors(temporary):
            save_tensors(temporary, {name: tensor.cpu() for name, tensor in tensors.items()})
        yield MmapDataset(temporary, others)
