"""Groups of the configuration as objects: models, datasets, optimizers, schedulers, transforms."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_dir
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from egin_dgl.errors import ConfigError, EginError

if TYPE_CHECKING:  # a misspelt option is reported without loading torch
    from egin_dgl.data import GraphDataset


def build(cfg: DictConfig | Mapping[str, Any], group: str) -> Any:
    """Instantiate a group of a configuration, or of plain settings; an invalid value is a `ConfigError`."""
    from egin_dgl.cli.validation import validate_group  # here, as it loads torch

    content = cfg.get(group)
    if isinstance(content, DictConfig):
        content = OmegaConf.to_container(content, resolve=True)
    try:
        return instantiate(validate_group(content, group))
    except InstantiationException as error:
        cause = error.__cause__
        if isinstance(cause, EginError):
            raise cause from None
        raise ConfigError(f"{group}: {cause or error}") from error


def load_datasets(overrides: list[str], config_dir: Path, config_name: str) -> Iterator["GraphDataset"]:
    """The datasets of overrides such as dataset=mutag,aids and dataset.root=DIRECTORY, one after the other."""
    chosen = [override for override in overrides if override.startswith("dataset=")]
    rest = [override for override in overrides if override not in chosen]
    for name in chosen[-1].removeprefix("dataset=").split(",") if chosen else [""]:
        with initialize_config_dir(str(config_dir), version_base="1.3"):
            cfg = compose(config_name, [f"dataset={name}", *rest] if name else rest)
        yield build(cfg, "dataset")
