"""The command `egin`: finds a command by its name and calls it, and loads nothing that the others need.

A command is a file in `commands` with a function `main`, which reads its words from sys.argv as a script does, and a
line below.
"""

import gc
import os
import sys
from importlib import import_module

from egin_dgl import __version__
from egin_dgl.cli.nearest import nearest
from egin_dgl.cli.user_config import add_to_python_path, split_config_dir
from egin_dgl.errors import EginError

COMMANDS = {
    "train": "cross-validate a model on a dataset, or many of them with -m",
    "predict": "answers of a trained run for new graphs",
    "explain": "which edges and nodes an answer rests on",
    "table": "one table of any set of runs",
    "ewl": "what colour refinement tells apart: audit, compare, draw",
    "zoo": "every model with its size and its time per epoch",
}


def main() -> None:
    """`egin COMMAND …`, as typed."""
    name, *words = sys.argv[1:] or ["--help"]
    if name in ("--help", "-h"):
        print(overview())
    elif name == "--version":
        print(f"egin-dgl {__version__}")
    elif name in COMMANDS:
        sys.argv = [f"egin {name}", *words]
        run(name)
    else:
        known = ", ".join(COMMANDS)
        sys.exit(f"error: there is no command {name!r}; there are: {known}{nearest(name, list(COMMANDS))}")


def run(name: str) -> None:
    """The command of this name with the words in sys.argv; HYDRA_FULL_ERROR=1 gives tracebacks."""
    own, _ = split_config_dir(sys.argv[1:])
    if own:
        add_to_python_path(own)
    wants_traceback = os.environ.get("HYDRA_FULL_ERROR") == "1"  # read before a command sets it
    try:
        import_module(f"egin_dgl.cli.commands.{name}").main()
    except EginError as error:
        if wants_traceback:
            raise
        sys.exit(f"error: {error}")
    finally:
        gc.freeze()  # a last look for garbage at all that was loaded would take most of a second


def overview() -> str:
    lines = [f"  egin {name:<8} {sentence}" for name, sentence in COMMANDS.items()]
    return "\n".join(
        [
            "Learning on graphs whose edges carry information.",
            "",
            *lines,
            "",
            "egin COMMAND --help tells more; HYDRA_FULL_ERROR=1 shows where an error came from.",
        ]
    )
