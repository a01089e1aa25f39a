"""A dataset for other processes: the file that holds its tensors is mapped, nothing is copied or sent.

Tensors sent to a process go through /dev/shm, of which a container may have 64 MB. Pages of a mapped file are in memory
once, however many processes look at them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from egin_dgl.data.dataset import TENSORS, GraphDataset
from egin_dgl.data.prepare import processed
from egin_dgl.data.tensor_file import map_tensors, save_tensors
from egin_dgl.errors import DataError
from egin_dgl.files import storage_errors, temporary_sibling


@dataclass(frozen=True)
class MmapDataset:
    """What is sent in place of a dataset: where its tensors are, and all else as it is."""

    file: Path
    rest: dict[str, Any]

    def open(self) -> GraphDataset:
        try:
            found, _ = map_tensors(self.file)  # the cache keeps words as tensors too
            tensors: dict[str, Any] = {name: found[name] for name in TENSORS}
        except (OSError, SafetensorError, KeyError) as error:
            raise DataError(f"the prepared data in {self.file} cannot be read: {error}") from error
        return GraphDataset(**tensors, **self.rest)


@contextmanager
def mapped(dataset: GraphDataset, folder: Path) -> Iterator[MmapDataset]:
    """The dataset for as long as this lasts: in its file of the cache, or else in a temporary one in `folder`."""
    others = [field.name for field in fields(GraphDataset) if field.name not in TENSORS]
    rest = {name: getattr(dataset, name) for name in others}
    kept = processed(dataset.digest, dataset.info.name).path
    if holds(kept, dataset):
        yield MmapDataset(kept.absolute(), rest)
        return
    place = folder.absolute() / "dataset.safetensors"
    with temporary_sibling(place) as temporary:
        with storage_errors(temporary):
            save_tensors(temporary, {name: getattr(dataset, name).cpu() for name in TENSORS})
        yield MmapDataset(temporary, rest)


def holds(file: Path, dataset: GraphDataset) -> bool:
    """Whether these are the tensors in a file: those of a dataset that was changed since are not."""
    try:
        tensors, _ = map_tensors(file)
    except (OSError, SafetensorError):
        return False
    return tensors.keys() >= set(TENSORS) and all(
        torch.equal(tensors[name], getattr(dataset, name)) for name in TENSORS
    )
