"""JSON files of run and sweep directories, written with a checksum. `schemas` reads them; its pydantic takes 0.2 s to import,
which a command with a wrong option does not wait for."""

import json
import zlib
from pathlib import Path

from egin_dgl.files import write_text

CHECKSUM = "crc32"  # of all other entries


def write_object(path: Path, content: dict, sealed: bool = True) -> None:
    """Write a JSON object; `sealed` with a checksum of all entries."""
    if sealed:
        content = content | {CHECKSUM: json_checksum(content)}
    write_text(path, json.dumps(content, indent=1) + "\n")


def json_checksum(content: dict) -> int:
    return zlib.crc32(json.dumps(json.loads(json.dumps(content))).encode())
