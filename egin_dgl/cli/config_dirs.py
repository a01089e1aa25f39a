"""Configuration directories: the one that comes with the package, and one of the user, given by Hydra's --config-dir, with
YAML and Python files of models, datasets and experiments."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omegaconf import DictConfig

CONFIG_NAME = "train"
CONFIG_DIR_FLAGS = ("--config-dir", "-cd")


def conf_dir() -> Path:
    """Inside the package if it is installed; in a clone, next to it."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def compose_config(overrides: Sequence[str], **options: Any) -> "DictConfig":
    """The configuration of `egin train` with these overrides."""
    from hydra import compose, initialize_config_dir  # slow, and not needed by all commands
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return compose(CONFIG_NAME, list(overrides), **options)


def list_choices(group: str, *directories: Path | None) -> list[str]:
    return sorted(
        {path.stem for directory in directories if directory for path in (directory / group).glob("*.yaml")}
    )


def split_config_dir(arguments: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The directory given by --config-dir, if any, and the other arguments."""
    directory, others, remaining = None, [], iter(arguments)
    for argument in remaining:
        flag, _, value = argument.partition("=")
        if flag in CONFIG_DIR_FLAGS:
            directory = Path(value or next(remaining, ""))
        else:
            others.append(argument)
    return directory, others


def add_to_python_path(directory: Path) -> None:
    """Make the modules of a directory importable, here and in the processes started from here."""
    path = str(directory.resolve())
    if path not in sys.path:
        sys.path.insert(0, path)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")]))


def search_path(directory: Path | None) -> list[str]:
    """Overrides that let Hydra compose from the directory as well."""
    return [f"hydra.searchpath=['file://{directory.resolve()}']"] if directory else []
