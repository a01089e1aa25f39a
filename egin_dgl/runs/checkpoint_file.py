"""last.pt: a file of ``torch.save`` with a checksum. Read with ``weights_only``, so nothing is unpickled.

torch writes a zip file and verifies none of its checksums. Ours is the comment at the end of the zip file, which every
reader of such files ignores.
"""

import io
import zlib
from pathlib import Path
from typing import Any

import torch

from egin_dgl.errors import TrainingError
from egin_dgl.files import write_bytes

MARK = b"egin_dgl crc32 "
DIGITS = 8  # hexadecimal digits of the checksum, after the mark


def write_checkpoint(path: Path, content: dict) -> None:
    memory = io.BytesIO()
    torch.save(content, memory)
    write_bytes(path, with_checksum(memory.getvalue()))


def with_checksum(file: bytes) -> bytes:
    """Append the checksum; a zip file without a comment ends in its length, two zero bytes."""
    length = (len(MARK) + DIGITS).to_bytes(2, "little")
    marked = file[:-2] + length + MARK
    return marked + b"%08x" % zlib.crc32(marked)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return the content; a damaged file is a TrainingError."""
    try:
        file = path.read_bytes()
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read ({error.strerror})") from error
    if not file[:-DIGITS].endswith(MARK) or file[-DIGITS:] != b"%08x" % zlib.crc32(file[:-DIGITS]):
        raise TrainingError(f"{path}: not a readable checkpoint (it is damaged)")
    try:
        content = torch.load(io.BytesIO(file), map_location="cpu", weights_only=True)
    except Exception as error:  # zip files and pickles of others fail in many ways
        raise TrainingError(f"{path}: not a readable checkpoint ({type(error).__name__})") from error
    if not isinstance(content, dict):
        raise TrainingError(f"{path}: not a readable checkpoint (it holds a {type(content).__name__})")
    return content
