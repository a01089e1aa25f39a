"""Safetensors files: written atomically, memory-mapped when read, and a checksum of their content."""

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
    """Write a file atomically."""
    with atomic_path(path) as temporary:
        save_tensors(temporary, tensors, metadata)


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a file in place, for a file that no other process reads yet."""
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata)
    except SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        if code is None:
            raise StorageError(f"cannot write {path}: {error}") from error
        raise OSError(int(code.group(1)), str(error)) from error


def map_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a file. Processes that read it share its pages in memory."""
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118


def checksum(tensors: Mapping[str, Tensor], record: dict) -> int:
    """CRC-32 of names, types, shapes and values, and of a JSON record.

    It detects damage, not manipulation. safetensors checks the length of a file but not its bytes.
    """
    total = zlib.crc32(json.dumps(record).encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        if tensor.numel():  # torch refuses a view of an empty tensor whose stride is not 1
            # A view as bytes, since numpy lacks some of torch's types.
            total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return total
