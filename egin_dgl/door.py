"""The door of the command line: resuming, and errors said in one line with the valid choices."""

import difflib
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, InstantiationException
from hydra.types import RunMode
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from egin_dgl.data import GraphDataset
from egin_dgl.errors import ConfigError, EginError, TrainingError

log = logging.getLogger(__name__)

WANTS_TRACEBACK = os.environ.get("HYDRA_FULL_ERROR") == "1"  # read before `run` sets it


def run(main: Callable[[], None], config_dir: Path, config_name: str) -> None:
    """Call a `@hydra.main` function: a known error is one line on stderr and exit code 1.

    HYDRA_FULL_ERROR=1 gives the traceback instead.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises what it would print in many lines
    try:
        sys.argv[1:] = resumed(sys.argv[1:])
        main()
    except (EginError, HydraException, OmegaConfBaseException) as error:
        if WANTS_TRACEBACK:
            raise
        sys.exit(f"error: {explain(error, config_dir, config_name)}")


def guarded(job: Callable[[Path], object]) -> object:
    """Run the job in Hydra's output folder; its known errors end a single run here, and only themselves in a sweep."""
    hydra = HydraConfig.get()
    folder = Path(hydra.runtime.output_dir)
    try:
        return job(folder)
    except (EginError, OmegaConfBaseException) as error:
        log.debug("what led to the error", exc_info=True)
        if isinstance(error, TrainingError):
            error = TrainingError(f"{error}; resume={os.path.relpath(folder)} goes on from here")
        if hydra.mode == RunMode.MULTIRUN or WANTS_TRACEBACK:
            raise error from None
        sys.exit(f"error: {one_line(error)}")
    except KeyboardInterrupt:
        print(f"\ninterrupted; resume={os.path.relpath(folder)} goes on from here", file=sys.stderr)
        sys.exit(130)


def resumed(arguments: list[str]) -> list[str]:
    """`resume=FOLDER` stands for the options that started the run in FOLDER, and for running there again."""
    chosen = [argument for argument in arguments if argument.startswith("resume=")]
    if not chosen or chosen[-1] == "resume=null":
        return arguments
    if len(arguments) > 1:
        raise ConfigError("resume=FOLDER goes on with the options that started the run; give no others")
    folder = Path(chosen[0].removeprefix("resume="))
    stored = folder / ".hydra" / "overrides.yaml"
    if not stored.is_file():
        raise ConfigError(f"{folder} is not the folder of a run: it has no .hydra/overrides.yaml")
    return [*OmegaConf.load(stored), f"hydra.run.dir={folder}"]


def datasets(overrides: list[str], config_dir: Path, config_name: str) -> Iterator[GraphDataset]:
    """The datasets that words like dataset=mutag,aids and dataset.root=FOLDER name, one after the other."""
    named = [word for word in overrides if word.startswith("dataset=")]
    rest = [word for word in overrides if word not in named]
    for option in named[-1].removeprefix("dataset=").split(",") if named else [""]:
        with initialize_config_dir(str(config_dir), version_base="1.3"):
            cfg = compose(config_name, [f"dataset={option}", *rest] if option else rest)
        yield build(cfg, "dataset")


def build(cfg: DictConfig, group: str) -> Any:
    """Instantiate a group; what is wrong with its values is said in one sentence."""
    try:
        return instantiate(cfg[group])
    except InstantiationException as error:
        cause = error.__cause__
        if isinstance(cause, EginError):
            raise cause from None
        raise ConfigError(f"{group}: {cause or error}") from error


def explain(error: Exception, config_dir: Path, config_name: str) -> str:
    """One line, with the valid options where the error is a wrong one."""
    text = str(error)
    if match := re.search(r"Could not find '([^']+)/([^'/]+)'", text):
        group, option = match.groups()
        options = sorted(path.stem for path in (config_dir / group).glob("*.yaml"))
        if options:
            return f"{group} has no option {option!r}; valid: {', '.join(options)}{nearest(option, options)}"
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match.group(1)
        parent, _, name = key.rpartition(".")
        valid = valid_keys(parent, config_dir, config_name)
        if valid:
            return f"there is no option {key!r}; valid{f' in {parent}' if parent else ''}: {', '.join(valid)}{nearest(name, valid)}"
    return one_line(error)


def one_line(error: Exception) -> str:
    """OmegaConf appends the key and type of the node to its messages, on lines of their own."""
    return " ".join(re.split(r"\s+full_key:", str(error))[0].split())


def valid_keys(parent: str, config_dir: Path, config_name: str) -> list[str]:
    """The keys beside a wrong one, in the configuration that the command's other choices give."""
    choices = [word for word in sys.argv[1:] if re.fullmatch(r"\w+=\w+", word)]
    choices = [word for word in choices if (config_dir / word.split("=")[0]).is_dir()]
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_dir), version_base="1.3"):
        node = (
            OmegaConf.select(compose(config_name, choices), parent)
            if parent
            else compose(config_name, choices)
        )
    return sorted(key for key in node if not key.startswith("_")) if isinstance(node, DictConfig) else []


def nearest(word: str, choices: list[str]) -> str:
    close = difflib.get_close_matches(word, choices, 1)
    return f" (did you mean {close[0]}?)" if close else ""
