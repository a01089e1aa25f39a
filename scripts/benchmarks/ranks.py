"""The steps of an epoch by several ranks, beside one process: EGIN-E on the molecules of HIV (MoleculeNet).

    python scripts/benchmark.py ranks [--path hiv.csv] [--ranks 2] [--batch-sizes 256,32] [--turns 3]

The table of molecules is --path, or hiv.csv in the directory EGIN_MOLECULES; --bonds 2000 takes as many graphs of `bonds` instead. One
process and --ranks of them take turns, each time in new processes, which warm up first; the minimum over turns of the wall-clock
time of an epoch without evaluation is printed.
"""

import argparse
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import torch

from egin_dgl.data import GraphDataset, bonds, load_smiles
from egin_dgl.data.loader import GraphLoader
from egin_dgl.data.mmap_dataset import MmapDataset, mapped
from egin_dgl.models import EGINE
from egin_dgl.reproducibility import processor_name
from egin_dgl.tasks import TASKS
from egin_dgl.training.job import Recipe
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.parallel.processes import fold_worker_context
from egin_dgl.training.parallel.rank_processes import process_group
from egin_dgl.training.parallel.ranks import Ranks
from egin_dgl.training.parallel.resources import cores
from egin_dgl.training.parallel.shared_sum import SharedSum
from egin_dgl.training.parallel.workers import one_thread
from egin_dgl.training.train_epoch import TrainState, train_one_epoch

AIM = 1.7
WARM_UP = 20  # steps


def epoch_seconds(dataset: GraphDataset, batch_size: int, ranks: Ranks) -> float:
    """The wall clock of the steps of an epoch, which all ranks begin together."""
    options = TrainerOptions(ema_decay=0.99, batch_size=batch_size)
    scheduler = partial(torch.optim.lr_scheduler.StepLR, step_size=50)
    torch.manual_seed(0)
    model = EGINE(dataset.info)
    state = TrainState.create(
        model, Recipe(EGINE, partial(torch.optim.Adam, lr=0.01), scheduler, options, {})
    )
    task = TASKS[dataset.info.task].fit(dataset.labels, dataset.info)
    for graphs in (WARM_UP * batch_size, len(dataset)):
        loader = GraphLoader(dataset, range(min(graphs, len(dataset))), batch_size)
        batches = loader.shuffled(torch.Generator().manual_seed(0), ranks.rank, ranks.size)
        ranks.any(True)  # wait for all
        start = time.perf_counter()
        train_one_epoch(state, batches, 1, len(loader), options, task, ranks)
    return time.perf_counter() - start


def time_rank(lent: MmapDataset, batch_size: int, ranks: Ranks, directory: Path) -> None:
    torch.set_num_threads(1)
    with process_group(ranks, directory / "store"):
        seconds = epoch_seconds(lent.open(), batch_size, ranks)
    if ranks.is_first:
        (directory / "seconds").write_text(repr(seconds))


def time_ranks(lent: MmapDataset, batch_size: int, size: int) -> float:
    context = fold_worker_context()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        shared = SharedSum(directory / "gradients", size, context)
        processes = [
            context.Process(target=time_rank, args=(lent, batch_size, Ranks(rank, size, shared), directory))
            for rank in range(size)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        return float((directory / "seconds").read_text())


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """The options that `load` reads."""
    parser.add_argument("--path", help="table with the columns smiles and active")
    parser.add_argument("--bonds", type=int, help="graphs of `bonds` to take instead of molecules")


def load(options: argparse.Namespace) -> GraphDataset:
    if options.bonds:
        return bonds(graphs=options.bonds)
    path = options.path or Path(os.environ.get("EGIN_MOLECULES", ""), "hiv.csv")
    if not Path(path).is_file():
        sys.exit(f"error: there is no {path}: give --path, or EGIN_MOLECULES, the directory of hiv.csv")
    return load_smiles(str(path), target="active", on_invalid="skip", name="HIV")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_dataset(parser)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch-sizes", default="256,32")
    parser.add_argument("--turns", type=int, default=3)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    dataset = load(options)
    print(f"{processor_name()}, {len(cores())} cores, the least of {options.turns} turn(s)\n")
    print(
        f"| EGIN-E, {len(dataset):,} graphs | one rank, s | {options.ranks} ranks, s | × as fast | aim |\n"
        "|---|---:|---:|---:|---:|"
    )
    with one_thread(), tempfile.TemporaryDirectory() as directory, mapped(dataset, Path(directory)) as lent:
        for batch_size in map(int, options.batch_sizes.split(",")):
            least = dict.fromkeys((1, options.ranks), float("inf"))
            for _ in range(options.turns):
                for size in least:
                    least[size] = min(least[size], time_ranks(lent, batch_size, size))
            one, several = least.values()
            aim = f"{AIM:g}" if batch_size == 256 else ""
            print(
                f"| batch of {batch_size} | {one:.2f} | {several:.2f} | {one / several:.2f} | {aim} |",
                flush=True,
            )
