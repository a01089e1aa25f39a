"""JSON objects in a folder: written whole, and read with the shape they must have, or refused in a sentence."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path

from egin_dgl.errors import ConfigError
from egin_dgl.files import write_text

SEAL = "crc32"  # of all other entries
NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
}


def write_object(path: Path, content: dict, sealed: bool = False) -> None:
    """`sealed` with a checksum, where a digit that changes would not be noticed."""
    if sealed:
        content = content | {SEAL: seal(content)}
    write_text(path, json.dumps(content, indent=1) + "\n")


def read_object(path: Path, shape: Mapping[str, type | tuple[type, ...]]) -> dict:
    """The object in a file that has these entries of these types; its seal, where it has one, holds and is left out."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: damaged ({error})") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: damaged (it holds {kind(content)}, no object)")
    if absent := [key for key in shape if key not in content]:
        raise ConfigError(
            f"{path}: has no {', '.join(absent)}; an earlier version wrote it, or it is damaged"
        )
    for key, kinds in shape.items():
        if not isinstance(content[key], kinds):
            raise ConfigError(f"{path}: damaged ({key} is {kind(content[key])})")
    if SEAL in content and content.pop(SEAL) != seal(content):
        raise ConfigError(f"{path}: damaged (the checksum does not match)")
    return content


def seal(content: dict) -> int:
    """Of what JSON makes of it."""
    return zlib.crc32(json.dumps(json.loads(json.dumps(content))).encode())


def kind(value: object) -> str:
    return NAMES.get(type(value), "nothing")
