"""The words that a folder keeps, looked through before they are said again: the folder may be somebody else's.

A word of a command can call any function that is installed (`_target_`), read the environment (`${oc.env:…}`), load files
of configuration from anywhere, or set variables for new processes. Of a folder's words only those are said again that do none
of this: options of a run with plain values, targets that `egin_dgl.models.registry` knows, and a short list of Hydra's own.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, QuotedString, RangeSweep
from hydra.core.override_parser.types import IntervalSweep as Interval
from hydra.errors import HydraException

from egin_dgl.cli.validation import OPTION_GROUPS as PLAIN
from egin_dgl.cli.validation import TARGET_GROUPS as BUILT
from egin_dgl.errors import ConfigError
from egin_dgl.models.registry import find_registered as registered
from egin_dgl.models.registry import refuse_hydra_syntax as refuse_special

GROUPS = (*BUILT, *PLAIN)
ALONE = ("seed", "device", "reproducible", "run", "fold_curves")
REFERENCE = re.compile(r"\$\{[A-Za-z_][\w.]*\}")  # to another option; with a colon it would be a function
NAME = re.compile(r"-?\w[\w.-]*")  # no path, no line break for the script of a launcher
KEY = re.compile(r"[A-Za-z]\w*(?:[./]\w+)*")
# Where it goes on is settled by the folder itself.
REPLACED = (
    "hydra.mode=",
    "hydra.run.dir=",
    "hydra.sweep.dir=",
    "hydra.sweep.subdir=",
    "hydra.sweeper.n_trials=",
)
OF_HYDRA = re.compile(
    r"hydra/launcher|hydra/sweeper|hydra/sweeper/sampler|hydra\.verbose|hydra\.(?:job|hydra)_logging\.root\.level"
    r"|hydra\.launcher\.(?:n_jobs|verbose|timeout|batch_size|timeout_min|cpus_per_task|gpus_per_node|tasks_per_node|nodes"
    r"|mem_gb|partition|account|qos|constraint|gres|array_parallelism|max_num_timeout|name|exclude|nodelist)"
    r"|hydra\.sweeper\.(?:direction|n_jobs|study_name|max_failure_rate|max_batch_size|sampler\.[a-z]\w*)"
)
LAUNCHERS = ("basic", "joblib", "ray", "submitit_local", "submitit_slurm")
SWEEPERS = ("basic", "optuna", "search")


def replayed(words: Sequence[object], folder: Path, trust: bool = False) -> list[str]:
    """The words of a folder that may be said again, but those on where it goes on; one that may not is an error.

    With `trust` they are taken as they are.
    """
    kept = [word for word in words if not (isinstance(word, str) and word.startswith(REPLACED))]
    if trust:
        return [str(word) for word in kept]
    check_links(folder)
    for word in kept:
        try:
            check_word(word)
        except ConfigError as error:
            raise ConfigError(
                f"{folder} asks for {word!r}: {error}; if you know who made the folder, add trust=true"
            ) from None
    return [str(word) for word in kept]


def check_word(word: object) -> None:
    if not isinstance(word, str) or word.startswith("-"):
        raise ConfigError("that is no option with a value")
    if re.search(r"[$\\]", REFERENCE.sub("", word)):
        raise ConfigError("a value that is computed or hidden is not taken from a folder")
    try:
        override = OverridesParser.create().parse_override(word)
        values = list(plain_values(override))
    except HydraException:
        raise ConfigError("Hydra cannot read it") from None
    key = override.key_or_group
    if override.package is not None or not KEY.fullmatch(key):
        raise ConfigError("an option is not put elsewhere on a folder's word")
    if key.startswith("hydra"):
        check_of_hydra(key, values)
    else:
        check_of_run(key, values)


def check_of_run(key: str, values: Sequence[Any]) -> None:
    group, *names = key.split(".")
    if group not in (*GROUPS, *ALONE):
        raise ConfigError("that is no option of a run")
    if names == ["_target_"] and group in BUILT:
        for value in values:
            registered(value, group)
        return
    if any(name.startswith("_") for name in names):
        raise ConfigError("how a class is called is not taken from a folder")
    if key in GROUPS and not all(isinstance(value, str) and NAME.fullmatch(value) for value in values):
        raise ConfigError(f"{key} is chosen by its name")
    if key == "dataset.url" and any(value is not None for value in values):
        raise ConfigError("nothing is downloaded from an address that a folder names")


def check_of_hydra(key: str, values: Sequence[Any]) -> None:
    if not OF_HYDRA.fullmatch(key):
        raise ConfigError("this option of Hydra is not taken from a folder")
    if not all(value is None or NAME.fullmatch(str(value)) for value in values):
        raise ConfigError("here only a name or a number is taken from a folder")
    known = {"hydra/launcher": LAUNCHERS, "hydra/sweeper": SWEEPERS}.get(key)
    if known and any(value not in known for value in values):
        raise ConfigError(f"only {', '.join(known)} are taken from a folder")


def plain_values(override: Override) -> Iterator[Any]:
    """The value of a word, or all of a sweep: numbers, texts, and lists and mappings of these."""
    value = override.value() if override.value_type is not None else None
    if isinstance(value, ChoiceSweep):
        chosen = value.list
    elif isinstance(value, RangeSweep):
        chosen = [value.start, value.stop, value.step]
    elif isinstance(value, Interval):
        chosen = [value.start, value.end]
    else:
        chosen = [value]
    for one in chosen:
        found = unquoted(one)
        refuse_special(found if not isinstance(found, str) else None, override.key_or_group)
        yield found


def unquoted(value: Any) -> Any:
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [unquoted(one) for one in value]
    if isinstance(value, dict):
        return {str(unquoted(key)): unquoted(one) for key, one in value.items()}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise ConfigError("a value that is computed or hidden is not taken from a folder")


def check_links(folder: Path) -> None:
    """What is written into a foreign folder must not land elsewhere."""
    inside = folder.resolve()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            if path.is_symlink() and not path.resolve().is_relative_to(inside):
                raise ConfigError(
                    f"{path} is a link that leads out of the folder; if you know who made it, add trust=true"
                )
