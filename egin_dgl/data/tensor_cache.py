"""Tensors kept on disk between runs: written whole, checked when read again, and made again where damaged."""

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

HEADER = "cache"  # the one entry of a file's metadata: several would be written in any order
CHECKSUM = "crc32"  # of all the file holds; an earlier one, "checksum", left out types and shapes


@dataclass(frozen=True)
class TensorCache:
    """One file of the cache. `key` says what its tensors were made from: another key, other tensors."""

    path: Path
    key: str

    @classmethod
    def of(cls, folder: str, key: str, name: str = "") -> "TensorCache":
        """The file for a key (64 hex digits) in a folder of the cache, with a name in front for people."""
        return cls(cache_dir() / folder / f"{name and name + '-'}{key[:20]}.safetensors", key)

    def write(self, tensors: Mapping[str, Tensor], record: dict) -> None:
        """Keep tensors and a record of plain lists, numbers and strings; a disk that is full costs time, not the run."""
        header = {"key": self.key, "record": record, CHECKSUM: checksum(tensors, record)}
        try:
            write_tensors(self.path, tensors, {HEADER: json.dumps(header)})
        except StorageError as error:
            log.warning("%s; it is made again next time", error)

    def read(self, restore: Callable[[dict[str, Tensor], dict], T]) -> T | None:
        """What `restore(tensors, record)` makes of what was kept; None where that is nothing, old or damaged."""
        try:
            if not self.path.is_file():
                return None
            tensors, metadata = map_tensors(self.path)
            header = json.loads(metadata.get(HEADER, "{}"))
            if not header or "checksum" in header:  # from before there was this cache, or this checksum
                return None
            if header["key"] != self.key or header[CHECKSUM] != checksum(tensors, header["record"]):
                raise ValueError("checksum does not match")
            return restore(tensors, header["record"])
        except (OSError, SafetensorError, DataError, KeyError, TypeError, ValueError) as error:
            log.warning("%s is damaged (%s) and is made again", self.path, error)
            return None
