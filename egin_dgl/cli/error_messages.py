"""Errors in overrides, each in one sentence with the valid choices; torch is not loaded."""

import re
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import QuotedString, Sweep
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import ConfigAttributeError, ConfigKeyError

from egin_dgl.backend import installed_version
from egin_dgl.cli.config_dirs import conf_dir, list_choices, split_config_dir
from egin_dgl.errors import ConfigError, did_you_mean, one_line

# Package of each option, and of the samplers of a search.
PLUGINS = {
    "joblib": "hydra-joblib-launcher",
    "ray": "hydra-ray-launcher",
    "submitit_local": "hydra-submitit-launcher",
    "submitit_slurm": "hydra-submitit-launcher",
    "optuna": "hydra-optuna-sweeper 'sqlalchemy<2'",
    "sampler": "hydra-optuna-sweeper 'sqlalchemy<2'",
}


def check_overrides(arguments: Sequence[str]) -> None:
    """Raise for overrides that Hydra or a plugin of it would answer with a traceback."""
    for override in arguments:
        option, equals, value = override.partition("=")
        if equals and not option.strip("+~ "):
            raise ConfigError(f"{override!r} names no option: write OPTION=VALUE")
        group = option.lstrip("+~").partition("@")[0]
        choices = list_choices(group, conf_dir())
        if choices and option.startswith("~"):
            raise ConfigError(f"{group} is missing: choose one by {group}=NAME")
        if (choices or group.startswith("hydra/")) and equals and not is_choice(override):
            valid = f"one of {', '.join(choices)}" if choices else "a name"
            raise ConfigError(f"{group} must be {valid}, got {value!r}")
        if option.lstrip("+").startswith("hydra.sweeper."):
            check_sweeper(option.lstrip("+"), parse_value(override))
    if "hydra/launcher=submitit_slurm" in arguments and shutil.which("srun") is None:
        raise ConfigError("hydra/launcher=submitit_slurm needs SLURM, and there is no srun here")


def check_sweeper(option: str, value: Any) -> None:
    """Validate an option of hydra/sweeper=optuna, which checks types only."""
    from egin_dgl import options  # here, as pydantic takes 0.1 s to load

    class SweeperOptions(options.Options):
        group = "hydra.sweeper"

        n_trials: options.CountOrZero = 0  # a finished search has none left
        n_jobs: options.Count = 1
        max_failure_rate: options.Fraction | None = None
        study_name: str = "study"

    name = option.removeprefix("hydra.sweeper.")
    if name in SweeperOptions.model_fields:
        SweeperOptions(**{name: value})


def is_choice(override: str) -> bool:
    """Whether the value of GROUP=VALUE is a name, or several to sweep over."""
    try:
        value = parse_value(override)
    except HydraException:  # reported by Hydra, with the position
        return True
    return isinstance(value, Sweep) or (isinstance(value, str) and value != "")


def parse_value(override: str) -> Any:
    value = OverridesParser.create().parse_override(override).value()
    return value.text if isinstance(value, QuotedString) else value


def explain(error: Exception) -> str:
    """An error of Hydra in one line, with the valid options where one is wrong."""
    text = str(error)
    if isinstance(error, OverrideParseException):
        return f"{error.override!r} is not OPTION=VALUE: quote special characters, as in OPTION='\"VALUE\"'"
    if match := re.search(r"Could not find 'hydra/((?:launcher|sweeper)/(\w+)[\w/]*)'", text):
        option, plugin = match[1].replace("/", "=", 1), PLUGINS.get(match[2], "")
        if plugin and installed_version(plugin.split()[0]) == "not installed":
            return f"hydra/{option} is in a package that is not installed: pip install {plugin}"
    if match := re.search(r"Could not find '([^']+)/([^'/]+)'", text):
        group, option = match.groups()
        user_dir, _ = split_config_dir(sys.argv[1:])
        if choices := list_choices(group, conf_dir(), user_dir):
            return f"{group} has no option {option!r}; valid: {', '.join(choices)}{did_you_mean(option, choices)}"
    if match := re.search(r"Could not override '([^']+)'", text):
        return explain_unknown(match[1], error.__cause__) or one_line(error)
    return one_line(error)


def explain_unknown(override: str, cause: BaseException | None) -> str | None:
    """The sentence about an option that does not exist, with those beside it; None if not its name but its value is wrong."""
    if not isinstance(cause, (ConfigKeyError, ConfigAttributeError)):
        return None
    option, node = str(cause.full_key), cause.parent_node
    if not f"{override}.".startswith(f"{option}.") or not isinstance(node, DictConfig):
        return None
    valid = sorted(name for name in map(str, node) if name != "hydra" and not name.startswith("_"))
    group, _, name = option.rpartition(".")
    place = f" in {group}" if group else ""
    known = f"; valid{place}: {', '.join(valid)}{did_you_mean(name, valid)}" if valid else ""
    return f"there is no option {option!r}{known}"
