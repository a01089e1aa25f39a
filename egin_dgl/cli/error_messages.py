"""What Hydra says in many lines, in one: what is wrong with the words of a command, and the valid choices."""

import re
import sys
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf

from egin_dgl.cli.nearest import nearest
from egin_dgl.cli.paths import options_of
from egin_dgl.cli.user_config import searching, split_config_dir
from egin_dgl.errors import one_line

LAUNCHERS = {
    "joblib": "hydra-joblib-launcher",
    "ray": "hydra-ray-launcher",
    "submitit_local": "hydra-submitit-launcher",
    "submitit_slurm": "hydra-submitit-launcher",
}


def explain(error: Exception, config_dir: Path, config_name: str) -> str:
    """One line, with the valid options where the error is a wrong one."""
    text = str(error)
    if match := re.search(r"Could not find 'hydra/(launcher|sweeper)/(?:sampler/)?(\w+)'", text):
        kind, option = match.groups()
        package = "hydra-optuna-sweeper 'sqlalchemy<2'" if kind == "sweeper" else LAUNCHERS.get(option)
        if package:
            return f"hydra/{kind}={option} is in a package that is not installed: pip install {package}"
    if match := re.search(r"Could not find '([^']+)/([^'/]+)'", text):
        group, option = match.groups()
        own, _ = split_config_dir(sys.argv[1:])
        options = options_of(group, config_dir, own)
        if options:
            return f"{group} has no option {option!r}; valid: {', '.join(options)}{nearest(option, options)}"
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match.group(1)
        parent, _, name = key.rpartition(".")
        valid = valid_keys(parent, config_dir, config_name)
        if name in valid:  # the value has what the option has not
            return one_line(error)
        if valid:
            return f"there is no option {key!r}; valid{f' in {parent}' if parent else ''}: {', '.join(valid)}{nearest(name, valid)}"
    return one_line(error)


def valid_keys(parent: str, config_dir: Path, config_name: str) -> list[str]:
    """The keys beside a wrong one, in the configuration that the command's other choices give."""
    own, words = split_config_dir(sys.argv[1:])
    choices = [word for word in words if re.fullmatch(r"\w+=\w+", word)]
    choices = [word for word in choices if options_of(word.split("=")[0], config_dir, own)]
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_dir), version_base="1.3"):
        whole = compose(config_name, [*searching(own), *choices])
    node = OmegaConf.select(whole, parent) if parent else whole
    keys = map(str, node) if isinstance(node, DictConfig) else ()
    return sorted(key for key in keys if not key.startswith("_"))
