"""What a run is, recorded before it trains: validated settings, and where they came from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

Types: TypeAlias = dict[str, type | tuple[type, ...]]  # of the entries of a JSON object
Settings: TypeAlias = dict[str, Any]  # plain JSON: {"model": {"hidden_dim": 64, …}, …, "seed": 0, …}

GROUPS = ("model", "dataset", "optimizer", "scheduler", "cv", "trainer", "ewl", "seed", "reproducible")
SPEC: Types = {"settings": dict, "references": dict, "overrides": list, "choices": dict}


@dataclass(frozen=True)
class RunSpec:
    """Everything needed to run it again, and labels for tables.

    Args:
        settings: every option with its validated value.
        references: options defined by another option, ``{"scheduler.T_max": "trainer.epochs"}``; a grid that varies
            the second varies the first.
        overrides: options as typed on the command line. A label, never parsed.
        choices: option chosen of each config group, ``{"model": "egin_e"}``. A label.
        config_dir: directory given with ``--config-dir``. Printed, never opened.
    """

    settings: Settings
    references: dict[str, str] = field(default_factory=dict)
    overrides: list[str] = field(default_factory=list)
    choices: dict[str, str] = field(default_factory=dict)
    config_dir: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RunSpec":
        """Read what ``to_json`` returned; the types of SPEC have been checked."""
        config_dir = content.get("config_dir")
        return cls(
            settings=content["settings"],
            references=read_strings(content["references"]),
            overrides=[str(override) for override in content["overrides"]],
            choices=read_strings(content["choices"]),
            config_dir=None if config_dir is None else str(config_dir),
        )


def read_strings(content: Mapping) -> dict[str, str]:
    return {str(key): str(value) for key, value in content.items()}


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
