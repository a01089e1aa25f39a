"""The door of the command line: resuming, and errors said in one line with the valid choices."""

import difflib
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, InstantiationException
from hydra.types import RunMode
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from egin_dgl.cli import sweep
from egin_dgl.data import GraphDataset
from egin_dgl.errors import ConfigError, EginError, TrainingError, one_line
from egin_dgl.training.cores import Share, share

log = logging.getLogger(__name__)

WANTS_TRACEBACK = os.environ.get("HYDRA_FULL_ERROR") == "1"  # read before `run` sets it


SHORT = {"hydra/sweeper=optuna": "hydra/sweeper=search"}  # the plugin's name for it, with our defaults
RENAMED = {"gatv2_edge": "edge_gat"}  # models that older runs, and commands kept from then, call otherwise


def run(main: Callable[[], None], config_dir: Path, config_name: str) -> None:
    """Call a `@hydra.main` function: a known error is one line on stderr and exit code 1, a sweep ends in a table.

    HYDRA_FULL_ERROR=1 gives the traceback instead.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises what it would print in many lines
    failure = None
    try:
        sys.argv[1:] = [current_name(word) for word in resumed(sys.argv[1:])]
        main()
    except Exception as error:
        known = isinstance(error, (EginError, HydraException, OmegaConfBaseException))
        if WANTS_TRACEBACK or not (known or sweep.jobs()):
            raise
        failure = explain(error, config_dir, config_name)
    if sweep.jobs():
        from egin_dgl.reporting.many_runs.sweep import publish_sweep  # here, as single runs need none of it

        unfinished = publish_sweep(sweep.current, Console())
        if unfinished:
            failure = f"{len(unfinished)} of {len(sweep.jobs())} jobs did not end well; "
            failure += f"resume={os.path.relpath(sweep.current)} tries them again"
    if failure:
        sys.exit(f"error: {failure}")


def current_name(word: str) -> str:
    """An option as it is called now."""
    group, _, choices = word.partition("=")
    if group == "model":
        return f"model={','.join(RENAMED.get(choice, choice) for choice in choices.split(','))}"
    return SHORT.get(word, word)


def guarded(cfg: DictConfig, job: Callable[[Path, Share], dict]) -> float | None:
    """Run the job in Hydra's output folder with its share of the machine; return what a search maximizes.

    Its known errors end a single run here, and only themselves in a sweep.
    """
    hydra = HydraConfig.get()
    folder = Path(hydra.runtime.output_dir)
    in_sweep = hydra.mode == RunMode.MULTIRUN
    resumable = os.path.relpath(hydra.sweep.dir if in_sweep else folder)
    try:
        if in_sweep and "direction" in hydra.sweeper:
            check_search(hydra.sweeper.direction, cfg.cv.validation)
        with only_one_in(folder):
            return job(folder, share(hydra.launcher, hydra.sweep.dir))["validation_score"]
    except (EginError, OmegaConfBaseException) as error:
        log.debug("what led to the error", exc_info=True)
        if in_sweep or WANTS_TRACEBACK:
            raise error from None
        if isinstance(error, TrainingError):
            error = TrainingError(f"{error}; resume={resumable} goes on from here")
        sys.exit(f"error: {one_line(error)}")
    except KeyboardInterrupt:
        print(f"\ninterrupted; resume={resumable} goes on from here", file=sys.stderr)
        sys.exit(130)


def check_search(direction: Any, validation: bool) -> None:
    if not validation:
        raise ConfigError("a search goes by the validation part, which this cv has not; use cv=ten_fold")
    if getattr(direction, "name", direction) != "maximize":
        raise ConfigError(f"a score is to be maximized: hydra.sweeper.direction=maximize, not {direction}")


@contextmanager
def only_one_in(folder: Path) -> Iterator[None]:
    """Two processes in one folder would overwrite each other's folds."""
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise ConfigError(f"another process is at work in {folder}") from None


def resumed(arguments: list[str]) -> list[str]:
    """`resume=FOLDER` stands for the options that started the run or sweep in FOLDER, and for running there again."""
    chosen = [argument for argument in arguments if argument.startswith("resume=")]
    if not chosen or chosen[-1] == "resume=null":
        return arguments
    if len(arguments) > 1:
        raise ConfigError("resume=FOLDER goes on with the options that started the run; give no others")
    folder = Path(chosen[0].removeprefix("resume="))
    if sweep.is_sweep(folder):
        return sweep.continued(folder)
    stored = folder / ".hydra" / "overrides.yaml"
    if not stored.is_file():
        raise ConfigError(f"{folder} is not the folder of a run or a sweep: it has no .hydra/overrides.yaml")
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
    if match := re.search(r"Could not find 'hydra/(launcher|sweeper)/(?:sampler/)?(\w+)'", text):
        kind, option = match.groups()
        extra = {"joblib": "parallel", "ray": "ray"}.get(option, "optuna" if kind == "sweeper" else "slurm")
        return f"hydra/{kind}={option} is in a package that is not installed: pip install -e '.[{extra}]'"
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
