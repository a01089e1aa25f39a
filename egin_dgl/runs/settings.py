"""What a run is, recorded as JSON before it trains: validated settings, and where they came from."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from egin_dgl.errors import ConfigError
from egin_dgl.files import write_text

Types: TypeAlias = dict[str, type | tuple[type, ...]]  # of the entries of a JSON object
Settings: TypeAlias = dict[str, Any]  # plain JSON: {"model": {"hidden_dim": 64, …}, …, "seed": 0, …}

GROUPS = ("model", "dataset", "optimizer", "scheduler", "cv", "trainer", "ewl", "seed", "reproducible")
SPEC: Types = {"settings": dict, "references": dict, "overrides": list, "choices": dict}
CHECKSUM = "crc32"  # of all other entries


class FileIn:
    """Attribute of a class with a `path`: a file in that directory."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, directory: Any, owner: type) -> Path:
        return directory.path / self.name


def write_object(path: Path, content: dict, sealed: bool = True) -> None:
    """Write a JSON object; `sealed` with a checksum of all entries."""
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
    problem = None
    if not isinstance(content, dict):
        problem = "it is not a JSON object"
    elif absent := [key for key in types if key not in content]:
        problem = f"it has no {', '.join(absent)}"
    elif wrong := [key for key, expected in types.items() if not isinstance(content[key], expected)]:
        problem = f"{wrong[0]} is a {type(content[wrong[0]]).__name__}"
    elif CHECKSUM in content and content.pop(CHECKSUM) != json_checksum(content):
        problem = "the checksum does not match"
    if problem:
        raise ConfigError(f"{path}: damaged ({problem})")
    return content


def json_checksum(content: dict) -> int:
    return zlib.crc32(json.dumps(json.loads(json.dumps(content))).encode())


@dataclass(frozen=True)
class RunSpec:
    """Everything needed to run it again, and labels for tables.

    `references` are options defined by another option, ``{"scheduler.T_max": "trainer.epochs"}``: a grid that varies the
    second varies the first.
    """

    settings: Settings  # every option with its validated value
    references: dict[str, str] = field(default_factory=dict)
    overrides: list[str] = field(default_factory=list)  # as typed; a label, never parsed
    choices: dict[str, str] = field(default_factory=dict)  # of config groups, {"model": "egin_e"}; a label
    config_dir: str | None = None  # given with --config-dir; printed, never opened

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RunSpec":
        """Read what ``to_json`` returned; the types of SPEC have been checked."""
        config_dir = content.get("config_dir")
        return cls(
            settings=content["settings"],
            references={key: str(value) for key, value in content["references"].items()},
            overrides=list(map(str, content["overrides"])),
            choices={key: str(value) for key, value in content["choices"].items()},
            config_dir=None if config_dir is None else str(config_dir),
        )


def result_settings(settings: Settings) -> Settings:
    """Return the settings that determine results: without device, number of workers and additional output."""
    found = {group: settings[group] for group in GROUPS if group in settings}
    if isinstance(trainer := found.get("trainer"), dict):
        found["trainer"] = {name: value for name, value in trainer.items() if name != "fold_workers"}
    return found


def flatten_settings(settings: dict, prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names, {"model": {"hidden_dim": 64}} → {"model.hidden_dim": 64}, without nulls."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= flatten_settings(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = value
    return flat
