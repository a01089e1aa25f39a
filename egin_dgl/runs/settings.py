"""A run's settings: what of a configuration decides its numbers."""

import re
from typing import Any, TypeAlias

from omegaconf import OmegaConf
from omegaconf.base import Container

Settings: TypeAlias = (
    dict  # as JSON has them: {"model": {"hidden_dim": 64, …}, …, "seed": 0, "reproducible": false}
)

GROUPS = ("model", "dataset", "optimizer", "scheduler", "cv", "trainer", "ewl", "seed", "reproducible")
LONGEST_CHAIN = 5  # of references to references
# Settings that earlier versions did not know, as they computed; those of a group only where the group is there.
SINCE = {"reproducible": False}
SINCE_IN: dict[str, dict[str, object]] = {
    "cv": {"split_by": None},
    "trainer": {"monitor_window": 1, "ema_decay": None, "bn_statistics": "running", "warmup_epochs": 0},
}


def settings_of(config: Container) -> Settings:
    """All of GROUPS but the number of workers, which changes only the time it takes."""
    return settings_in(mapping_of(config))


def settings_in(content: dict) -> Settings:
    """The same of a configuration as JSON could hold it."""
    known = of_any_version(content)
    settings = {group: known[group] for group in GROUPS}
    settings["trainer"].pop("fold_workers", None)
    return settings


def mapping_of(config: Container, resolve: bool = True) -> dict:
    """A mapping of a configuration as JSON could hold it."""
    content = OmegaConf.to_container(config, resolve=resolve)
    if not isinstance(content, dict):
        raise TypeError(f"the configuration is a {type(content).__name__}, no mapping")
    return content


def without_functions(content: dict) -> dict:
    """A configuration as a folder keeps it: references such as ${trainer.epochs} to plain values are followed, nothing else.

    OmegaConf would also call the functions that it names, such as ${oc.env:HOME}, which are left as text.
    """

    def value_of(node: Any, chain: int = 0) -> Any:
        if isinstance(node, dict):
            return {key: value_of(inner) for key, inner in node.items()}
        if isinstance(node, list):
            return [value_of(inner) for inner in node]
        match = re.fullmatch(r"\$\{([A-Za-z_][\w.]*)\}", node) if isinstance(node, str) else None
        if match is None or chain == LONGEST_CHAIN:
            return node
        named: Any = content
        for key in match[1].split("."):
            named = named.get(key) if isinstance(named, dict) else None
        return node if isinstance(named, (dict, list)) else value_of(named, chain + 1)

    return value_of(content)


def of_any_version(settings: Settings) -> Settings:
    """Settings that an earlier version may have written, with what was added since."""
    groups = {
        name: SINCE_IN[name] | settings[name] for name in SINCE_IN if isinstance(settings.get(name), dict)
    }
    return SINCE | settings | groups


def deciding(settings: Settings) -> Settings:
    """Without what only says how results are told: a run made before it was said goes on all the same."""
    cv = settings.get("cv")
    if not isinstance(cv, dict):  # of a damaged record
        return settings
    return settings | {"cv": {name: value for name, value in cv.items() if name != "holdout"}}
