"""last.pt: what torch saves, with a checksum of the whole file. No pickle is read.

torch writes a zip file and looks at none of its checksums. So the file ends in one of its own, in the place that a zip
file has for a comment; every reader of torch's files passes over it.
"""

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch

from egin_dgl.errors import TrainingError
from egin_dgl.files import write_bytes

MARK = b"egin_dgl crc32 "
DIGITS = 8  # of the checksum, in hexadecimal, after the mark


def write_checkpoint(path: Path, content: dict) -> None:
    memory = io.BytesIO()
    torch.save(content, memory)
    write_bytes(path, with_checksum(memory.getvalue()))


def with_checksum(file: bytes) -> bytes:
    """A zip file without a comment ends in the length of it, two bytes that are zero."""
    length = (len(MARK) + DIGITS).to_bytes(2, "little")
    marked = file[:-2] + length + MARK
    return marked + b"%08x" % zlib.crc32(marked)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What was written; whatever else is there now is a TrainingError that says so."""
    try:
        file = path.read_bytes()
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        check(file)
        content = torch.load(io.BytesIO(file), map_location="cpu", weights_only=True)
    except Exception as error:  # damage makes zip files and pickles fail in many ways
        raise TrainingError(f"{path}: not a readable checkpoint (it is damaged)") from error
    if not isinstance(content, dict):
        raise TrainingError(f"{path}: not a readable checkpoint (it holds something else)")
    return content


def check(file: bytes) -> None:
    """Against damage, not malice."""
    marked, digits = file[:-DIGITS], file[-DIGITS:]
    if marked.endswith(MARK):
        if digits != b"%08x" % zlib.crc32(marked):
            raise ValueError("the checksum does not match")
        return
    with zipfile.ZipFile(
        io.BytesIO(file)
    ) as parts:  # an earlier version's: each part has a checksum, not the whole
        if damaged := parts.testzip():
            raise ValueError(f"{damaged} is damaged")
