"""A run's settings: what of a configuration decides its numbers."""

from typing import TypeAlias

from omegaconf import OmegaConf
from omegaconf.base import Container

Settings: TypeAlias = (
    dict  # as JSON has them: {"model": {"hidden_dim": 64, …}, …, "seed": 0, "reproducible": false}
)

GROUPS = ("model", "dataset", "optimizer", "scheduler", "cv", "trainer", "ewl", "seed", "reproducible")
# Settings that earlier versions did not know, as they computed; those of a group only where the group is there.
SINCE = {"reproducible": False}
SINCE_IN: dict[str, dict[str, object]] = {"cv": {"split_by": None}}


def settings_of(config: Container) -> Settings:
    """All of GROUPS but the number of workers, which changes only the time it takes."""
    known = of_any_version(mapping_of(config))
    settings = {group: known[group] for group in GROUPS}
    settings["trainer"].pop("workers", None)
    return settings


def mapping_of(config: Container, resolve: bool = True) -> dict:
    """A mapping of a configuration as JSON could hold it."""
    content = OmegaConf.to_container(config, resolve=resolve)
    if not isinstance(content, dict):
        raise TypeError(f"the configuration is a {type(content).__name__}, no mapping")
    return content


def of_any_version(settings: Settings) -> Settings:
    """Settings that an earlier version may have written, with what was added since."""
    groups = {
        name: SINCE_IN[name] | settings[name] for name in SINCE_IN if isinstance(settings.get(name), dict)
    }
    return SINCE | settings | groups
