"""Settings of a run, validated once where they enter: composed by Hydra, or recorded in a directory. Plain values afterwards.

Groups with a `_target_` are validated by its signature, so a new model is validated by its constructor; the others by the
classes of `egin_dgl.training.options`.
"""

import pydoc
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.conf import HydraConf
from omegaconf import DictConfig, OmegaConf

from egin_dgl.data.readers.search_path import DEFAULT_URL
from egin_dgl.errors import ConfigError, one_line
from egin_dgl.models.registry import HYDRA_KEYS, PARTIAL, find_registered, refuse_hydra_syntax
from egin_dgl.options import Options, format_value, validate_options
from egin_dgl.runs.settings import RunSpec, Settings
from egin_dgl.training.options import CvOptions, RunOptions, TrainerOptions

TARGET_GROUPS = ("model", "dataset", "optimizer", "scheduler", "ewl")
OPTION_GROUPS: dict[str, type[Options]] = {"cv": CvOptions, "trainer": TrainerOptions}
COMMAND_OPTIONS = {"run", "resume", "trust", "dry_run"}  # of a command, not of a run
CALL_KEYS = (*HYDRA_KEYS, "_args_", "_convert_", "_recursive_")  # how Hydra calls a target
REFERENCE = re.compile(r"\$\{(\w+(?:\.\w+)+)\}")
MAX_CHARACTERS = 100_000


def validate_settings(settings: Mapping[str, Any], trust: bool = True) -> Settings:
    """Valid settings as plain values, `no` as False; top-level options that are absent get their defaults.

    Args:
        settings: nested plain values, interpolations resolved: `{"model": {"_target_": …, …}, …, "seed": 0}`
        trust: whether the user wrote them. Default: True. Those of a run directory may come from anybody: their targets must
            be registered, and they name no path as a dataset and no URL but the default.

    Raises:
        ConfigError: in one sentence, for the first invalid value
    """
    if not trust:
        refuse_untrusted(settings)
    groups = (*OPTION_GROUPS, *TARGET_GROUPS)
    others = {str(name): value for name, value in settings.items() if name not in groups}
    valid = RunOptions(**others).model_dump(exclude=COMMAND_OPTIONS)
    for group in groups:
        if group not in settings:
            raise ConfigError(f"{group} is missing: choose one by {group}=NAME")
        valid[group] = validate_group(settings[group], group)
    return valid


def validate_group(content: object, group: str) -> dict[str, Any]:
    """The values of one group, in the order given."""
    if not isinstance(content, Mapping):
        raise ConfigError(f"{group} must be a group of options, got {format_value(content)}")
    if missing := [name for name, value in content.items() if value == "???"]:
        raise ConfigError(f"Missing mandatory value: {group}.{missing[0]}")
    if group in OPTION_GROUPS:
        valid = OPTION_GROUPS[group](**{str(name): value for name, value in content.items()})
        return {str(name): getattr(valid, str(name)) for name in content}
    if not content and group == "ewl":
        return {}
    if "_target_" not in content:
        raise ConfigError(f"{group} has no _target_, its class or function: choose one by {group}=NAME")
    for name in ("_partial_", "_recursive_"):
        if not isinstance(content.get(name, True), bool):
            raise ConfigError(f"{group}.{name} must be true or false, got {format_value(content[name])}")
    options = {str(name): value for name, value in content.items() if name not in CALL_KEYS}
    return {**content, **validate_options(locate(content["_target_"], group), options, group)}


def refuse_untrusted(settings: Mapping[str, Any]) -> None:
    """Raise where settings ask for more than to make objects of this package and torch."""
    for group, content in settings.items():
        if group in TARGET_GROUPS and isinstance(content, Mapping) and content:
            find_registered(content.get("_target_"), group)
            is_partial = group in PARTIAL
            if content.get("_partial_", False) is not is_partial:
                raise ConfigError(f"{group}._partial_ must be {str(is_partial).lower()} in a run directory")
            content = {key: value for key, value in content.items() if key not in HYDRA_KEYS}
        refuse_hydra_syntax(content, group)
    if len(repr(settings)) > MAX_CHARACTERS:
        raise ConfigError(f"the settings have more than {MAX_CHARACTERS} characters")
    dataset = settings.get("dataset")
    if isinstance(dataset, Mapping) and dataset.get("url") not in (None, DEFAULT_URL):
        raise ConfigError("dataset.url must be the default in a run directory: no other URL is downloaded")


def locate(name: object, group: str) -> Callable:
    """The class or function that a `_target_` of the user names."""
    try:
        target = pydoc.locate(name) if isinstance(name, str) else None
    except pydoc.ErrorDuringImport as error:
        raise ConfigError(f"{group}._target_: {name!r} cannot be imported ({one_line(error)})") from error
    if not callable(target):
        raise ConfigError(f"{group}._target_ must name a class or function, got {format_value(name)}")
    return target


def resolve_settings(cfg: DictConfig) -> Settings:
    return validate_settings(app_config(cfg, resolve=True))


def app_config(cfg: DictConfig, resolve: bool) -> dict[str, Any]:
    """The configuration without Hydra's own, as plain values."""
    app = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    content: Any = OmegaConf.to_container(app, resolve=resolve)
    return content


def make_spec(cfg: DictConfig, hydra: HydraConf | DictConfig) -> RunSpec:
    """What run.json records of a composed configuration; `hydra` has the overrides and choices of the command."""
    choices = {
        str(group): str(option)
        for group, option in hydra.runtime.choices.items()
        if option is not None and "/" not in str(group)
    }
    sources = [str(one.path) for one in hydra.runtime.config_sources if one.provider == "command-line"]
    return RunSpec(
        settings=resolve_settings(cfg),
        references=find_references(app_config(cfg, resolve=False)),
        overrides=list(hydra.overrides.task),
        choices=choices,
        config_dir=sources[0] if sources else None,
    )


def find_references(content: dict, prefix: str = "") -> dict[str, str]:
    """The options that are defined as another option, ``T_max: ${trainer.epochs}``."""
    found: dict[str, str] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            found |= find_references(value, f"{prefix}{name}.")
        elif isinstance(value, str) and (match := REFERENCE.fullmatch(value)):
            found[f"{prefix}{name}"] = match[1]
    return found


def validate_recorded(spec: RunSpec, directory: Path, trust: bool, config_dir: Path | None = None) -> RunSpec:
    """The record of a directory with validated settings; `config_dir` must be given if the recorded command had one."""
    if spec.config_dir is not None and config_dir is None:
        raise ConfigError(f"{directory} was started with --config-dir {spec.config_dir}; give that again")
    if imports_from(directory) and not trust:
        raise ConfigError(
            f"Python 3.10 would import modules from {directory}, the working directory: start from another one"
        )
    try:
        return replace(spec, settings=validate_settings(spec.settings, trust))
    except ConfigError as error:
        hint = "" if trust else "; if you trust the author of the directory, add trust=true"
        raise ConfigError(f"{directory}: {error}{hint}") from error


def imports_from(directory: Path, version: tuple[int, ...] = sys.version_info[:2]) -> bool:
    """Whether processes that are started now look for modules in a directory: before Python 3.11 in the working directory."""
    return version < (3, 11) and Path.cwd().is_relative_to(directory.resolve())
