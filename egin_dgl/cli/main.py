"""The command `egin`: imports the module of a command by its name and calls its `main`.

A command is a file in `commands` with a function `main`, which reads sys.argv as a script does, and a line in `COMMANDS`.
"""

import gc
import sys
from importlib import import_module

from egin_dgl import __version__
from egin_dgl.cli.config_dirs import add_to_python_path, split_config_dir
from egin_dgl.errors import did_you_mean

COMMANDS = {
    "train": "cross-validate a model on a dataset, or sweep over many with -m",
    "predict": "predict the targets of new graphs with a trained run",
    "explain": "show which edges and nodes a prediction depends on",
    "table": "compare runs in one table",
    "ewl": "compare graphs by colour refinement: audit, compare, draw",
    "edges": "show what edge features and structure are worth to a model on a dataset",
    "pairs": "show which pairs of graphs models distinguish",
}


def main() -> None:
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("--help", "-h"):
        print(overview())
    elif name == "--version":
        print(f"egin-dgl {__version__}")
    elif name in COMMANDS:
        sys.argv = [f"egin {name}", *arguments]
        run(name)
    else:
        sys.exit(
            f"error: there is no command {name!r}; valid: {', '.join(COMMANDS)}{did_you_mean(name, COMMANDS)}"
        )


def run(name: str) -> None:
    user_dir, _ = split_config_dir(sys.argv[1:])
    if user_dir:
        add_to_python_path(user_dir)
    from egin_dgl.cli.entrypoint import run_app  # not needed by the overview of commands

    try:
        run_app(lambda: import_module(f"egin_dgl.cli.commands.{name}").main())
    finally:
        gc.freeze()  # a last garbage collection over all loaded modules would take most of a second


def overview() -> str:
    commands = "\n".join(f"  egin {name:<8} {sentence}" for name, sentence in COMMANDS.items())
    return f"""Learning on graphs whose edges carry information.

{commands}

egin COMMAND --help lists its options; HYDRA_FULL_ERROR=1 shows the traceback of an error."""
