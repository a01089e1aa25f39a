"""Files of tensors (safetensors): written whole, mapped when read, and a checksum of what is in them."""

import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from egin_dgl.errors import StorageError
from egin_dgl.files import atomic_path


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    with atomic_path(path) as temporary:
        save_tensors(temporary, tensors, metadata)


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Into a file that nobody else looks at yet."""
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata)
    except SafetensorError as error:
        reason = re.search(r"os error (\d+)", str(error))
        if reason is None:
            raise StorageError(f"cannot write {path}: {error}") from error
        raise OSError(int(reason.group(1)), str(error)) from error


def map_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file. Pages of the file are memory that all its readers share."""
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118


def checksum(tensors: Mapping[str, Tensor], record: dict) -> int:
    """Of names, types, shapes and values, and of a record that JSON can hold. Against damage, not malice.

    safetensors checks the length of a file but not its bytes.
    """
    total = zlib.crc32(json.dumps(record).encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        # As bytes, as numpy does not know all of torch's types.
        total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return total
