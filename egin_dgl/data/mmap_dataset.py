"""A dataset shared with worker processes through a memory-mapped file.

Tensors sent to a process go through /dev/shm, which a container may limit to 64 MB. The pages of a mapped file are in
memory once, however many processes read them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from egin_dgl.data.dataset import TENSORS, GraphDataset
from egin_dgl.data.prepare import cache_entry
from egin_dgl.data.tensor_file import map_tensors, save_tensors
from egin_dgl.errors import DataError
from egin_dgl.files import storage_errors, temporary_beside


@dataclass(frozen=True)
class MmapDataset:
    """A picklable reference to a dataset: the file of its tensors, and its other fields."""

    file: Path
    other_fields: dict[str, Any]

    def open(self) -> GraphDataset:
        """The dataset, with its tensors mapped from the file."""
        try:
            found, _ = map_tensors(self.file)  # a cache file has further tensors
            tensors: dict[str, Any] = {name: found[name] for name in TENSORS}
        except (OSError, SafetensorError, KeyError) as error:
            raise DataError(f"cannot read the prepared data in {self.file}: {error}") from error
        return GraphDataset(**tensors, **self.other_fields)


@contextmanager
def mapped(dataset: GraphDataset, directory: Path) -> Iterator[MmapDataset]:
    """Map a dataset from its cache file, or from a temporary file in `directory` that is removed at the end."""
    others = {
        field.name: getattr(dataset, field.name)
        for field in fields(GraphDataset)
        if field.name not in TENSORS
    }
    cached = cache_entry(dataset.digest, dataset.info.name).path
    if _has_tensors_of(dataset, cached):
        yield MmapDataset(cached.absolute(), others)
        return
    with temporary_beside(directory.absolute() / "dataset.safetensors") as temporary:
        with storage_errors(temporary):
            save_tensors(temporary, {name: getattr(dataset, name).cpu() for name in TENSORS})
        yield MmapDataset(temporary, others)


def _has_tensors_of(dataset: GraphDataset, file: Path) -> bool:
    """Whether a file holds these very tensors; those of a transformed dataset differ."""
    try:
        tensors, _ = map_tensors(file)
    except (OSError, SafetensorError):
        return False
    return tensors.keys() >= set(TENSORS) and all(
        torch.equal(tensors[name], getattr(dataset, name)) for name in TENSORS
    )
