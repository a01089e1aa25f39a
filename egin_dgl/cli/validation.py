"""Validation of settings, from a command line, a file or a run directory.

Groups with a `_target_` are validated by its signature, so a new model is validated by its constructor; the others by the
classes of `egin_dgl.training.options`.
"""

import pydoc
from collections.abc import Callable, Mapping
from typing import Any

from egin_dgl.data.readers.download import DEFAULT_URL
from egin_dgl.errors import ConfigError, one_line
from egin_dgl.models.registry import HYDRA_KEYS, PARTIAL, find_registered, refuse_hydra_syntax
from egin_dgl.options import Options, format_value, validate_options
from egin_dgl.training.options import CvOptions, RunOptions, TrainerOptions

TARGET_GROUPS = ("model", "dataset", "optimizer", "scheduler", "ewl")
OPTION_GROUPS: dict[str, type[Options]] = {"cv": CvOptions, "trainer": TrainerOptions}
CALL_KEYS = (*HYDRA_KEYS, "_args_", "_convert_", "_recursive_")  # how Hydra calls a target
MAX_CHARACTERS = 100_000


def validate_settings(settings: Mapping[str, Any], trust: bool = True) -> dict[str, Any]:
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
    valid = RunOptions(**others).model_dump()
    for group in groups:
        if group not in settings:
            raise ConfigError(f"{group} is missing: choose one by {group}=NAME")
        valid[group] = validate_group(settings[group], group)
    return valid


def validate_group(content: object, group: str) -> dict[str, Any]:
    """The values of one group, in the order given."""
    if not isinstance(content, Mapping):
        raise ConfigError(
            f"{group} must be a group of options, chosen by {group}=NAME, got {format_value(content)}"
        )
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
            if content.get("_partial_", False) is not (group in PARTIAL):
                raise ConfigError(
                    f"{group}._partial_ must be {str(group in PARTIAL).lower()} in a run directory"
                )
            content = {key: value for key, value in content.items() if key not in HYDRA_KEYS}
        refuse_hydra_syntax(content, group)
    if len(repr(settings)) > MAX_CHARACTERS:
        raise ConfigError(f"the settings have more than {MAX_CHARACTERS} characters")
    dataset = settings.get("dataset")
    name, url = (dataset.get("name"), dataset.get("url")) if isinstance(dataset, Mapping) else (None, None)
    if isinstance(name, str) and (name in (".", "..") or set(name) & set("/\\\0")):
        raise ConfigError(f"dataset.name must be a name without a path, got {format_value(name)}")
    if url not in (None, DEFAULT_URL):
        raise ConfigError("dataset.url must be the default in a run directory: no other URL is downloaded")


def locate(name: object, group: str) -> Callable:
    """The class or function that a `_target_` of the user names."""
    try:
        target = pydoc.locate(name) if isinstance(name, str) else None
    except pydoc.ErrorDuringImport as error:
        raise ConfigError(f"{group}._target_: {name!r} cannot be imported ({one_line(error)})") from error
    if not callable(target):
        raise ConfigError(
            f"{group}._target_ must be the dotted name of a class or function, got {format_value(name)}"
        )
    return target
