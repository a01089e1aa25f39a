"""Groups of the configuration as objects: models, datasets, optimizers, schedulers, transforms."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_dir
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig

from egin_dgl.errors import ConfigError, EginError

if TYPE_CHECKING:  # what only names it need not load torch
    from egin_dgl.data import GraphDataset


def build(cfg: DictConfig, group: str) -> Any:
    """Instantiate a group; what is wrong with its values is said in one sentence."""
    from egin_dgl.cli.validation import with_checked  # here, as it needs torch and a misspelt word does not

    try:
        return instantiate(with_checked(cfg, group)[group])
    except InstantiationException as error:
        cause = error.__cause__
        if isinstance(cause, EginError):
            raise cause from None
        raise ConfigError(f"{group}: {cause or error}") from error


def datasets(overrides: list[str], config_dir: Path, config_name: str) -> Iterator["GraphDataset"]:
    """The datasets that words like dataset=mutag,aids and dataset.root=FOLDER name, one after the other."""
    named = [word for word in overrides if word.startswith("dataset=")]
    rest = [word for word in overrides if word not in named]
    for option in named[-1].removeprefix("dataset=").split(",") if named else [""]:
        with initialize_config_dir(str(config_dir), version_base="1.3"):
            cfg = compose(config_name, [f"dataset={option}", *rest] if option else rest)
        yield build(cfg, "dataset")
