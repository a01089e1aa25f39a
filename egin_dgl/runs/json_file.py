"""JSON objects with a checksum: written atomically, read with the expected types or refused in one sentence."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path

from egin_dgl.errors import ConfigError
from egin_dgl.files import write_text

CHECKSUM = "crc32"  # of all other entries
TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
}


def write_object(path: Path, content: dict, sealed: bool = True) -> None:
    """Write an object; `sealed` with a checksum of all entries."""
    if sealed:
        content = content | {CHECKSUM: json_checksum(content)}
    write_text(path, json.dumps(content, indent=1) + "\n")


def read_object(path: Path, types: Mapping[str, type | tuple[type, ...]]) -> dict:
    """Read an object with entries of these types. The checksum, if present, is verified and left out."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: damaged ({error})") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: damaged (it holds {type_name(content)} instead of an object)")
    if absent := [key for key in types if key not in content]:
        raise ConfigError(f"{path}: damaged (it has no {', '.join(absent)})")
    for key, expected in types.items():
        if not isinstance(content[key], expected):
            raise ConfigError(f"{path}: damaged ({key} is {type_name(content[key])})")
    if CHECKSUM in content and content.pop(CHECKSUM) != json_checksum(content):
        raise ConfigError(f"{path}: damaged (the checksum does not match)")
    return content


def json_checksum(content: dict) -> int:
    return zlib.crc32(json.dumps(json.loads(json.dumps(content))).encode())


def type_name(value: object) -> str:
    return TYPE_NAMES.get(type(value), "null")
