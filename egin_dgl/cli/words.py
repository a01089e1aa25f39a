"""The words of a command as Hydra is to read them: older names, short ones, and `resume=FOLDER`."""

from pathlib import Path

from egin_dgl.cli import sweep
from egin_dgl.errors import ConfigError
from egin_dgl.runs.run_folder import RunFolder
from egin_dgl.runs.sweep_folder import SweepFolder

SHORT = {"hydra/sweeper=optuna": "hydra/sweeper=search"}  # the plugin's name for it, with our defaults
RENAMED = {"gatv2_edge": "edge_gat"}  # models that older runs, and commands kept from then, call otherwise
TRUST = "trust=true"  # beside resume=FOLDER: the folder's words are said again without being looked through


def understood(arguments: list[str]) -> list[str]:
    return [current_name(word) for word in resumed(arguments)]


def current_name(word: str) -> str:
    """An option as it is called now."""
    group, _, choices = word.partition("=")
    if group == "model":
        return f"model={','.join(RENAMED.get(choice, choice) for choice in choices.split(','))}"
    return SHORT.get(word, word)


def resumed(arguments: list[str]) -> list[str]:
    """`resume=FOLDER` stands for the options that started the run or sweep in FOLDER, and for running there again."""
    chosen = [argument for argument in arguments if argument.startswith("resume=")]
    if not chosen or chosen[-1] == "resume=null":
        if TRUST in arguments:
            raise ConfigError(
                f"{TRUST} goes with resume=FOLDER alone, where a folder's own words are said again"
            )
        return arguments
    trust = TRUST in arguments
    if len(arguments) > 1 + trust:
        raise ConfigError(
            f"resume=FOLDER goes on with the options that started the run; give no others but {TRUST}"
        )
    folder = Path(chosen[0].removeprefix("resume="))
    if SweepFolder(folder).is_there:
        return sweep.continued(SweepFolder(folder), trust)
    from egin_dgl.cli.replayed import replayed  # here, as it loads torch

    return [*replayed(RunFolder(folder).started_with(), folder, trust), f"hydra.run.dir={folder}"]
