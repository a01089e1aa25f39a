"""Tensors kept on disk between runs: written whole, checked when read again, and made again where damaged."""

import json
import logging
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from egin_dgl.data.sources import cache_dir
from egin_dgl.errors import DataError
from egin_dgl.files import atomic_path

log = logging.getLogger(__name__)

T = TypeVar("T")

HEADER = "cache"  # the one entry of a file's metadata: several would be written in any order


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
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
        header = {"key": self.key, "record": record, "checksum": checksum(tensors, record)}
        try:
            with atomic_path(self.path) as temporary:
                save_file(tensors, temporary, metadata={HEADER: json.dumps(header)})
        except (OSError, SafetensorError) as error:
            log.warning("cannot cache %s: %s", self.path, error)

    def read(self, restore: Callable[[dict[str, Tensor], dict], T]) -> T | None:
        """What `restore(tensors, record)` makes of what was kept; None where that is nothing, old or damaged."""
        if not self.path.is_file():
            return None
        try:
            with safe_open(self.path, "pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict
            if HEADER not in metadata:  # from before there was this cache
                return None
            header = json.loads(metadata[HEADER])
            if header["key"] != self.key or header["checksum"] != checksum(tensors, header["record"]):
                raise ValueError("checksum does not match")
            return restore(tensors, header["record"])
        except (OSError, SafetensorError, DataError, KeyError, TypeError, ValueError) as error:
            log.warning("%s is damaged (%s) and is made again", self.path, error)
            return None


def checksum(tensors: Mapping[str, Tensor], record: dict) -> int:
    """Against damage, not malice: safetensors checks a file's length but not its bytes."""
    total = zlib.crc32(json.dumps(record).encode())
    for name in sorted(tensors):
        total = zlib.crc32(tensors[name].numpy().data, zlib.crc32(name.encode(), total))
    return total
