"""Print the table of the zoo; `python scripts/docs.py zoo` puts it into the README."""

import argparse
import sys
from pathlib import Path

try:
    import egin_dgl  # noqa: F401
except ImportError as error:
    sys.exit(f"error: {error}")

from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from torch import nn

from egin_dgl.data import load_tu
from egin_dgl.errors import EginError
from egin_dgl.reporting.documents.zoo import measure_zoo, zoo_table
from egin_dgl.training.workers import one_thread

CONF = Path(__file__).resolve().parent.parent / "conf"


def main() -> None:
    args = parse(sys.argv[1:])
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
    known = sorted(path.stem for path in (CONF / "model").glob("*.yaml"))
    if unknown := set(names or ()) - set(known):
        raise ValueError(f"no model {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        made = {name: instantiate(compose("train", [f"model={name}"]).model) for name in names or known}
    return {name: make for name, make in made.items() if issubclass(make.func, nn.Module)}


if __name__ == "__main__":
    main()
