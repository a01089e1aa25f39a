"""Print the table of the zoo: every model with its size on a dataset and its time per epoch.

`python scripts/docs.py zoo` puts it into the README.
"""

import argparse
import sys
from collections.abc import Callable

from docgen.zoo import measure_zoo, zoo_table
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from torch import nn

from egin_dgl.cli.config_dirs import conf_dir
from egin_dgl.data import load_tu
from egin_dgl.errors import EginError
from egin_dgl.training.parallel.workers import one_thread


def main() -> None:
    args = parse(sys.argv[1:])
    try:
        with one_thread():
            rows = measure_zoo(model_makers(args.models), load_tu(args.dataset), epochs=args.epochs)
        print(zoo_table(rows, args.dataset), end="")
    except (EginError, ValueError, OSError) as error:
        sys.exit(f"error: {error}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="MUTAG", help="a TU dataset (default: MUTAG)")
    parser.add_argument("--epochs", type=int, default=7, help="epochs to time each model (default: 7)")
    parser.add_argument("--models", nargs="+", metavar="MODEL", help="options of conf/model (default: all)")
    return parser.parse_args(arguments)


def model_makers(names: list[str] | None) -> dict[str, Callable]:
    """The networks with the settings of conf/model, all if `names` is None; kernel machines have no epochs to time."""
    known = sorted(path.stem for path in (conf_dir() / "model").glob("*.yaml"))
    if unknown := set(names or ()) - set(known):
        raise ValueError(f"no model {', '.join(sorted(unknown))}; valid: {', '.join(known)}")
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        makers = {name: instantiate(compose("train", [f"model={name}"]).model) for name in names or known}
    return {name: make for name, make in makers.items() if issubclass(make.func, nn.Module)}


if __name__ == "__main__":
    main()
