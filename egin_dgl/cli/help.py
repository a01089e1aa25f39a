"""What `egin train --help` prints: Hydra's own page, which Hydra takes seconds to fill in as it reads every file of every group."""

from collections.abc import Sequence
from pathlib import Path
from string import Template

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from egin_dgl.cli.paths import options_of
from egin_dgl.cli.user_config import searching, split_config_dir


def help_page(words: Sequence[str], config_dir: Path, config_name: str) -> str:
    """With the configuration that the options among the words give."""
    own, others = split_config_dir(words)
    options = [word for word in others if not word.startswith("-")]
    with initialize_config_dir(str(config_dir), job_name=config_name, version_base="1.3"):
        whole = compose(config_name, [*searching(own), *options], return_hydra_config=True)
    page = whole.hydra.help.template
    folders = [config_dir, *([own] if own else [])]
    names = sorted({path.name for folder in folders for path in folder.iterdir() if path.is_dir()})
    groups = [f"{name}: {', '.join(found)}" for name in names if (found := options_of(name, *folders))]
    settings = OmegaConf.to_yaml(OmegaConf.masked_copy(whole, [str(key) for key in whole if key != "hydra"]))
    return Template(page).substitute(APP_CONFIG_GROUPS="\n".join(groups), CONFIG=settings)
