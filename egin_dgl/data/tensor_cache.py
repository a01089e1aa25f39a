"""Tensors cached on disk: written atomically, checked when read, rebuilt where missing or damaged."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from safetensors import SafetensorError
from torch import Tensor

from egin_dgl.data.readers.search_path import cache_dir
from egin_dgl.data.tensor_file import checksum, map_tensors, write_tensors
from egin_dgl.errors import DataError, StorageError

log = logging.getLogger(__name__)

T = TypeVar("T")

HEADER = "cache"  # one metadata entry only: safetensors writes several in arbitrary order


@dataclass(frozen=True)
class TensorCache:
    """One cache file; `key` identifies what its tensors were made from."""

    path: Path
    key: str

    @classmethod
    def for_key(cls, directory: str, key: str, name: str = "") -> "TensorCache":
        """The file of a key (64 hex digits) in a directory of the cache; `name` makes it readable for people."""
        return cls(cache_dir() / directory / f"{name and name + '-'}{key[:20]}.safetensors", key)

    def write(self, tensors: Mapping[str, Tensor], record: dict) -> None:
        """Store tensors and a JSON record; a full disk is a warning, not an error."""
        header = {"key": self.key, "record": record, "crc32": checksum(tensors, record)}
        try:
            write_tensors(self.path, tensors, {HEADER: json.dumps(header)})
        except StorageError as error:
            log.warning("%s; it will be rebuilt next time", error)

    def read(self, restore: Callable[[dict[str, Tensor], dict], T]) -> T | None:
        """``restore(tensors, record)`` of a valid file, else None."""
        try:
            if not self.path.is_file():
                return None
            tensors, metadata = map_tensors(self.path)
            header = json.loads(metadata[HEADER])
            if header["key"] != self.key or header["crc32"] != checksum(tensors, header["record"]):
                raise ValueError("checksum does not match")
            return restore(tensors, header["record"])
        except (OSError, SafetensorError, DataError, KeyError, TypeError, ValueError) as error:
            log.warning("%s is damaged (%s) and will be rebuilt", self.path, error)
            return None
