"""Commands whose arguments are `name=value`: the options are the fields of a pydantic model."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import yaml
from pydantic import Field

from egin_dgl.cli.config_dirs import split_config_dir
from egin_dgl.errors import ConfigError
from egin_dgl.options import CountOrZero, Device, Flag, ListOf, Options

if TYPE_CHECKING:
    from egin_dgl.inference.trained_run import TrainedRun

T = TypeVar("T", bound=Options)


class TrainedRunOptions(Options):
    """Options of commands that apply a trained run to graphs in a file."""

    run: str = Field(description="directory of a run, or several to average, A,B,C")
    input: str = Field(
        description="graphs: a CSV of SMILES, a directory of CSVs, a .bin of DGL, a TU dataset, or a SMILES string"
    )
    fold: CountOrZero | ListOf[CountOrZero] | None = Field(
        None, description="model of one fold, or the mean over several, [0, 2]; null: over all folds"
    )
    device: Device = Field("auto", description="auto, cpu, cuda, cuda:1")
    trust: Flag = Field(False, description="let the directory name model classes of other packages")

    def load(self, level: float | None = None) -> "TrainedRun":
        """Load the run, or several; `level` is that of intervals and label sets."""
        from egin_dgl.inference.trained_run import load_run
        from egin_dgl.training.device import pick_device

        runs = [self.run] if os.path.exists(self.run) else self.run.split(",")
        return load_run(runs, str(pick_device(self.device)), self.trust, self.fold, level)


def run_with_options(function: Callable[[T], None], kind: type[T], usage: str) -> None:
    if {"-h", "--help"} & set(sys.argv):
        print(help_text(kind, usage))
    else:
        function(parse_options(kind, sys.argv[1:]))


def parse_options(kind: type[T], arguments: Sequence[str]) -> T:
    """The options that the arguments give; text is taken as it is, other values are YAML."""
    given = {}
    _, overrides = split_config_dir(arguments)  # which `main` has made importable
    for override in overrides:
        name, _, value = override.partition("=")
        annotation = kind.model_fields[name].annotation if name in kind.model_fields else None
        is_text = annotation is str or (annotation == str | None and value not in ("", "null"))
        try:
            given[name] = value if is_text else yaml.safe_load(value)
        except yaml.YAMLError:
            raise ConfigError(f"{name} cannot be {value!r}") from None
    return kind(**given)


def help_text(kind: type[Options], usage: str) -> str:
    lines = [usage, ""]
    for name, field in kind.model_fields.items():
        default = "" if field.is_required() else yaml.safe_dump(field.default).splitlines()[0]
        lines.append(f"  {name + '=':<12} {field.description}{default and f' (default: {default})'}")
    return "\n".join(lines)
