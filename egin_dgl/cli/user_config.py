"""One's own models, datasets and experiments: a folder given with Hydra's --config-dir, and the Python files in it."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

FLAGS_OF_FOLDER = ("--config-dir", "-cd")


def split_config_dir(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The folder that the words of a command name, if one is, and the other words."""
    folder, others, left = None, [], iter(words)
    for word in left:
        flag, _, value = word.partition("=")
        if flag in FLAGS_OF_FOLDER:
            folder = Path(value or next(left, ""))
        else:
            others.append(word)
    return folder, others


def add_to_python_path(folder: Path) -> None:
    """Here, and in the processes started from here, as a script's own folder is."""
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [place, os.environ.get("PYTHONPATH")]))


def searching(folder: Path | None) -> list[str]:
    """Options that let a configuration be composed from the folder as well."""
    return [f"hydra.searchpath=['file://{folder.resolve()}']"] if folder else []
