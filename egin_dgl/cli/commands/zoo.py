"""Print the table of the zoo: every model with its size on a dataset and its time per epoch."""

import argparse
import sys

from egin_dgl.cli.paths import conf_dir
from egin_dgl.errors import EginError


def main() -> None:
    args = parse(sys.argv[1:])
    from egin_dgl.data import load_tu
    from egin_dgl.reporting.documents.zoo import measure_zoo, zoo_table
    from egin_dgl.training.parallel.workers import one_thread

    try:
        with one_thread():
            rows = measure_zoo(makers(args.models), load_tu(args.dataset), epochs=args.epochs)
        print(zoo_table(rows, args.dataset), end="")
    except (EginError, ValueError, OSError) as error:
        sys.exit(f"error: {error}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="MUTAG", help="a TU dataset (default: MUTAG)")
    parser.add_argument("--epochs", type=int, default=7, help="epochs to time each model (default: 7)")
    parser.add_argument("--models", nargs="+", metavar="MODEL", help="options of conf/model (default: all)")
    return parser.parse_args(arguments)


def makers(names: list[str] | None) -> dict:
    """Each network as its configuration ships it; without names, all. Machines on kernels have no epochs to time."""
    known = sorted(path.stem for path in (conf_dir() / "model").glob("*.yaml"))
    if unknown := set(names or ()) - set(known):
        raise ValueError(f"no model {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    from hydra import compose, initialize_config_dir
    from hydra.utils import instantiate
    from torch import nn

    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        made = {name: instantiate(compose("train", [f"model={name}"]).model) for name in names or known}
    return {name: make for name, make in made.items() if issubclass(make.func, nn.Module)}
