"""What a run is, recorded as JSON before it trains: validated settings, and where they came from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

Settings: TypeAlias = dict[str, Any]  # plain JSON: {"model": {"hidden_dim": 64, …}, …, "seed": 0, …}

GROUPS = ("model", "dataset", "optimizer", "scheduler", "cv", "trainer", "ewl", "seed", "reproducible")
PROCESSES = (
    "fold_workers",
    "ranks",
)  # options of the trainer, with which a run may be resumed in another way


class FileIn:
    """Attribute of a class with a `path`: a file in that directory."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, directory: Any, owner: type) -> Path:
        return directory.path / self.name


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
        """Read what ``to_json`` returned, checked as a `SpecRecord`."""
        return cls(**{field.name: content[field.name] for field in fields(cls)})


def result_settings(settings: Settings) -> Settings:
    """Return the settings that determine results: without device, number of processes and additional output."""
    found = {group: settings[group] for group in GROUPS if group in settings}
    if isinstance(trainer := found.get("trainer"), dict):
        found["trainer"] = {name: value for name, value in trainer.items() if name not in PROCESSES}
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


def trains_in_epochs(settings: Settings) -> bool:
    """Whether the model is trained in epochs, as networks are: kernel machines and forests are not."""
    return not {"penalties", "num_trees"} & set(settings["model"])
