"""Cost of EMA weights and precise BN: processor time of a fold of EGIN-E, evaluation included, as ratios."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch
from hydra import compose, initialize_config_dir

from egin_dgl.cli.experiment import build, make_recipe
from egin_dgl.cli.validation import resolve_settings
from egin_dgl.data import GraphDataset
from egin_dgl.data.splits import make_folds
from egin_dgl.errors import EginError
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.training.job import FoldJob
from egin_dgl.training.parallel.workers import one_thread
from egin_dgl.training.trainer import fit_fold

CONF = Path(__file__).resolve().parent.parent / "conf"
VARIANTS = {
    "running": ["trainer.ema_decay=null", "trainer.bn_statistics=running"],
    "EMA": ["trainer.ema_decay=0.98", "trainer.bn_statistics=running"],
    "precise BN": ["trainer.ema_decay=null", "trainer.bn_statistics=precise"],
    "EMA, precise BN": ["trainer.ema_decay=0.98", "trainer.bn_statistics=precise"],
    "EMA, sampled BN": ["trainer.ema_decay=0.98", "trainer.bn_statistics=sample"],
}
DATASETS = {
    "MUTAG": ["dataset=mutag", "trainer.epochs=20"],
    "PTC_MR": ["dataset=ptc_mr", "trainer.epochs=10"],
    "bonds, 10,000 graphs": ["dataset=bonds", "dataset.graphs=10000", "trainer.epochs=1"],
}


def fold_seconds(options: list[str], dataset: GraphDataset) -> float:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("train", ["model=egin_e", *options])
    split = make_folds(dataset.labels.numpy(), 10, 0, dataset.info.name).split(0, True)
    with tempfile.TemporaryDirectory() as folder:
        job = FoldJob(
            fold=0,
            seed=0,
            split=split,
            folder=FoldDir(Path(folder), 0),
            train=fit_fold,
            device=torch.device("cpu"),
            recipe=make_recipe(resolve_settings(cfg), dataset),
        )
        start = time.process_time()
        fit_fold(dataset, job, lambda *_: None)
        return time.process_time() - start


def main(turns: int, names: list[str]) -> None:
    """Minimum over turns, each of which runs all variants: other load on the machine only adds time."""
    print(f"| | {' | '.join(VARIANTS)} |\n|---|{'---:|' * len(VARIANTS)}")
    for name, options in DATASETS.items():
        if name not in names:
            continue
        with initialize_config_dir(str(CONF), version_base="1.3"):
            dataset = build(resolve_settings(compose("train", options)), "dataset")
        fold_seconds([*options, "trainer.epochs=1"], dataset)  # warm-up: loads code and prepares the data
        least = dict.fromkeys(VARIANTS, float("inf"))
        for _ in range(turns):
            for variant, overrides in VARIANTS.items():
                least[variant] = min(least[variant], fold_seconds([*options, *overrides], dataset))
        ratios = [f"{seconds / least['running']:.2f}" for seconds in least.values()]
        print(f"| {name} | {' | '.join(ratios)} |", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="number of measurements (default: 3)")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS), metavar="NAME")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        with one_thread():
            given = parse(sys.argv[1:])
            main(given.turns, given.datasets)
    except (EginError, OSError) as error:
        sys.exit(f"error: {error}")
