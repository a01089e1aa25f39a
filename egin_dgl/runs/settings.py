"""A run's settings: what of a configuration decides its numbers."""

from typing import TypeAlias

from omegaconf import DictConfig, OmegaConf

Settings: TypeAlias = (
    dict  # as JSON has them: {"model": {"hidden_dim": 64, …}, …, "seed": 0, "reproducible": false}
)

GROUPS = ("model", "dataset", "optimizer", "scheduler", "cv", "trainer", "ewl", "seed", "reproducible")
SINCE = {"reproducible": False}  # settings that earlier versions did not know, as they computed


def settings_of(config: DictConfig) -> Settings:
    """All of GROUPS but the number of workers, which changes only the time it takes."""
    known = of_any_version(OmegaConf.to_container(config, resolve=True))
    settings = {group: known[group] for group in GROUPS}
    settings["trainer"].pop("workers", None)
    return settings


def of_any_version(settings: Settings) -> Settings:
    """Settings that an earlier version may have written, with what was added since."""
    return SINCE | settings
