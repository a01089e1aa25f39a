"""Words of a command that Hydra would answer with a traceback."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import QuotedString, Sweep
from hydra.errors import HydraException

from egin_dgl.errors import ConfigError


def check_words(arguments: Sequence[str], config_dir: Path) -> None:
    """An error where a word names no option, a group is given something that is no name, or a launcher cannot launch."""
    for word in arguments:
        option, equals, value = word.partition("=")
        if equals and not option.strip("+~ "):
            raise ConfigError(f"{word!r} names no option: write OPTION=VALUE")
        group = option.lstrip("+~").partition("@")[0]
        if equals and (config_dir / group).is_dir() and not option.startswith("~") and not is_name(word):
            options = ", ".join(sorted(path.stem for path in (config_dir / group).glob("*.yaml")))
            raise ConfigError(f"{group} must be one of {options}, got {value!r}")
    if "hydra/launcher=submitit_slurm" in arguments and shutil.which("srun") is None:
        raise ConfigError(
            "hydra/launcher=submitit_slurm needs SLURM, and there is no srun here: start it on a node of the cluster"
        )


def is_name(word: str) -> bool:
    """Whether the value of OPTION=VALUE is a name, or several to sweep over."""
    try:
        value = OverridesParser.create().parse_override(word).value()
    except HydraException:  # said by Hydra itself, with the place
        return True
    text = value.text if isinstance(value, QuotedString) else value
    return isinstance(value, Sweep) or (isinstance(text, str) and text != "")
