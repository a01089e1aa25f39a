"""Every value of a configuration as its option declares it, or one sentence: the signature of a group's target decides.

Groups with a `_target_` are checked by its signature, so that a new model is checked by what its constructor says of itself;
the others by the dataclasses of `egin_dgl.training.options`.
"""

import pydoc
from collections.abc import Callable, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from egin_dgl.declared import Options, declared
from egin_dgl.errors import ConfigError, one_line
from egin_dgl.models.registry import refuse_special, registered
from egin_dgl.ranges import shown
from egin_dgl.training.options import CvOptions, RunOptions, TrainerOptions

BUILT = ("model", "dataset", "optimizer", "scheduler", "ewl")
OF_HYDRA = ("_target_", "_partial_", "_args_", "_convert_", "_recursive_")  # how a target is called
PLAIN: dict[str, type[Options]] = {"cv": CvOptions, "trainer": TrainerOptions}


def checked(cfg: DictConfig) -> DictConfig:
    """The configuration with every value as it is meant: `model.learn_eps=no` is false there, and in all that is written of it."""
    alone = {str(name): cfg[name] for name in cfg if name not in (*BUILT, *PLAIN)}
    found = replaced(cfg, "", RunOptions.of, alone)
    absent = {name: value for name, value in vars(RunOptions()).items() if name not in found}
    if absent:  # as in configurations of earlier versions
        found = OmegaConf.create(absent | {str(name): found._get_node(name) for name in found})
    for group in (*PLAIN, *BUILT):
        found = with_checked(found, group)
    return found


def with_checked(cfg: DictConfig, group: str) -> DictConfig:
    """The same for the values of one group."""
    content = group_of(cfg, group)
    if group in PLAIN:
        return replaced(cfg, group, PLAIN[group].of, content)
    if not content and group == "ewl":
        return cfg
    if "_target_" not in content:
        raise ConfigError(
            f"{group} has no _target_, the class or function it stands for: choose one by {group}=NAME"
        )
    target = found_by_name(content["_target_"], group)
    for name in ("_partial_", "_recursive_"):  # which Hydra takes as they are
        if not isinstance(content.get(name, True), bool):
            raise ConfigError(f"{group}.{name} must be true or false, got {shown(content[name])}")
    options = {name: value for name, value in content.items() if name not in OF_HYDRA}
    return replaced(cfg, group, lambda values: declared(target).checked(values, group), options)


def group_of(cfg: DictConfig, group: str) -> dict[str, Any]:
    """The values of a group, references followed."""
    if group not in cfg:
        raise ConfigError(f"{group} is missing: choose one by {group}=NAME")
    node = OmegaConf.select(cfg, group)
    content = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    if not isinstance(content, dict):
        raise ConfigError(f"{group} must be a group of options, chosen by {group}=NAME, got {shown(content)}")
    found = {str(name): value for name, value in content.items()}
    if missing := [name for name, value in found.items() if value == "???"]:
        raise ConfigError(f"Missing mandatory value: {group}.{missing[0]}")
    return found


def found_by_name(name: object, group: str) -> Callable:
    """What a `_target_` names. It may be a class of the user's own: whose command this is, and whose configuration."""
    try:
        target = pydoc.locate(name) if isinstance(name, str) else None
    except pydoc.ErrorDuringImport as error:
        raise ConfigError(f"{group}._target_: {name!r} cannot be imported ({one_line(error)})") from error
    if not callable(target):
        raise ConfigError(
            f"{group}._target_ must be the dotted name of a class or function, got {shown(name)}"
        )
    return target


def replaced(
    cfg: DictConfig, group: str, check: Callable[[Mapping[str, Any]], Any], values: Mapping[str, Any]
) -> DictConfig:
    """The configuration with what `check` made of the values, in a copy where that differs; references stay elsewhere."""
    result = check(values)
    meant = vars(result) if isinstance(result, Options) else result
    differing = [name for name, value in values.items() if repr(meant[name]) != repr(value)]
    if differing:
        cfg = cfg.copy()
    for name in differing:
        OmegaConf.update(cfg, f"{group}.{name}" if group else name, meant[name], merge=False)
    return cfg


def validate_settings(settings: dict, trust: bool = True) -> dict:
    """Return the settings with every value as its option declares it; `trust` allows classes of the user."""
    for name, node in settings.items() if not trust else ():
        plain = dict(node) if isinstance(node, dict) else node
        if name in BUILT and isinstance(plain, dict):
            if target := plain.pop("_target_", None):
                registered(target, name)
            plain.pop("_partial_", None)
        refuse_special(plain, name)
    content: Any = OmegaConf.to_container(checked(OmegaConf.create(settings)), resolve=True)
    return content
