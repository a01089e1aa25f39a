"""The words of a command as Hydra is to read them: older names, short ones, and `resume=FOLDER`."""

import os
import sys
from pathlib import Path

from egin_dgl.cli import sweep
from egin_dgl.cli.user_config import split_config_dir
from egin_dgl.errors import ConfigError
from egin_dgl.named import behind, quoted, sayable
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir

SHORT = {"hydra/sweeper=optuna": "hydra/sweeper=search"}  # the plugin's name for it, with our defaults
RENAMED = {"gatv2_edge": "edge_gat"}  # models that older runs, and commands kept from then, call otherwise
TRUST = "trust=true"  # beside resume=FOLDER: the folder's words are said again without being looked through


def understood(arguments: list[str]) -> list[str]:
    """A folder of one's own is named first, as Hydra reads no flag between options."""
    own, words = split_config_dir(arguments)
    flag = ["--config-dir", str(own)] if own else []
    return [*flag, *(current_name(word) for word in beside_its_run(resumed(words, own)))]


def beside_its_run(arguments: list[str]) -> list[str]:
    """The one model that `cv=refit run=FOLDER` trains lies in the folder of the run, unless another place is given."""
    runs = [word for word in arguments if word.startswith("run=")]
    if not runs:
        return arguments
    rest, name = [word for word in arguments if word not in runs], runs[-1].removeprefix("run=")
    words = [runs[-1], f"hydra.run.dir={name}/refit"]
    if Path(name).is_dir():  # as the shell names it; else it may be quoted for Hydra
        folder = sayable(Path(name))
        words = [sweep.setting("run", folder), sweep.setting("hydra.run.dir", folder / "refit")]
    return rest + words[: 1 if any(word.startswith("hydra.run.dir=") for word in rest) else 2]


def current_name(word: str) -> str:
    """An option as it is called now."""
    group, _, choices = word.partition("=")
    if group == "model":
        return f"model={','.join(RENAMED.get(choice, choice) for choice in choices.split(','))}"
    return SHORT.get(word, word)


def with_those_resumed(arguments: list[str]) -> list[str]:
    """The words of a command, and those that started the run or sweep it goes on with."""
    words = list(arguments)
    for folder in (Path(word.removeprefix("resume=")) for word in arguments if word.startswith("resume=")):
        if SweepDir(folder).is_there:
            words += SweepDir(folder).asked().task
        elif RunDir(folder).holds_a_run:
            words += RunDir(folder).started_with()
    return words


def resumed(arguments: list[str], own: Path | None = None) -> list[str]:
    """`resume=FOLDER` stands for the options that started the run or sweep in FOLDER, and for running there again."""
    chosen = [argument for argument in arguments if argument.startswith("resume=")]
    if not chosen or chosen[-1] == "resume=null":
        if TRUST in arguments and not any(word.startswith("run=") for word in arguments):
            raise ConfigError(
                f"{TRUST} goes with resume=FOLDER or run=FOLDER: it is that folder which is trusted"
            )
        return arguments
    trust = TRUST in arguments
    if len(arguments) > 1 + trust:
        raise ConfigError(
            f"resume=FOLDER goes on with the options that started the run; give no others but {TRUST}"
        )
    folder = Path(chosen[0].removeprefix("resume="))
    check_own(own, folder)
    if SweepDir(folder).is_there:
        return sweep.continued(SweepDir(folder), trust)
    from egin_dgl.cli.replayed import replayed  # here, as it loads torch

    # Hydra's notes stay as they are: written again on a full disk, they would be empty.
    return [
        *replayed(RunDir(folder).started_with(), folder, trust),
        sweep.setting("hydra.run.dir", sayable(folder)),
        "hydra.output_subdir=null",
    ]


def check_own(given: Path | None, folder: Path) -> None:
    """A folder of one's own holds code, which is run because it is named again, not because a run's folder names it."""
    run = next(iter(SweepDir(folder).jobs()), RunDir(folder))
    if given is None and (kept := run.own_configuration()):
        raise ConfigError(f"{folder} was started with --config-dir {kept}; give that beside resume={folder}")


def resuming(folder: str | Path) -> str:
    """The words that go on with a run or sweep, as a shell takes them."""
    own, _ = split_config_dir(sys.argv[1:])
    flag = ["--config-dir", os.path.relpath(own)] if own else []
    return " ".join(map(quoted, [f"resume={os.path.relpath(behind(folder))}", *flag]))
