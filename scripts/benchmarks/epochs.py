"""Whole epochs on a large set, training and evaluation: our models beside PyG's GINE, on the molecules of HIV (MoleculeNet).

    python scripts/benchmark.py epochs [--path hiv.csv] [--batch-size 64] [--epochs 3]

The table of molecules is --path, or hiv.csv in the directory EGIN_MOLECULES; --bonds 2000 takes as many graphs of `bonds` instead. 80 % of
the graphs are trained on, 10 % each are validation and test set. An epoch of ours is its steps, precise BatchNorm statistics of the
training set, and loss and accuracy of both other sets; one of PyG is its loader's batches, Adam, and a pass over both other sets. CPU seconds of one
thread; the evaluation of the first epoch, in which constants of the dataset are computed, has a column of its own.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from statistics import median

import numpy as np
import torch
from peers import PyG, pyg_graphs
from ranks import add_dataset, load
from torch.nn.functional import cross_entropy
from torch_geometric.loader import DataLoader

from egin_dgl.data import GraphDataset
from egin_dgl.data.loader import GraphLoader
from egin_dgl.data.splits import Split
from egin_dgl.models import EGIN, EGINC, EGINE
from egin_dgl.reproducibility import processor_name
from egin_dgl.tasks import TASKS
from egin_dgl.training.evaluator import Evaluator
from egin_dgl.training.job import Recipe
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.train_epoch import TrainState, train_one_epoch

AIM = 1.7  # times as fast as PyG
MODELS = {"EGIN": EGIN, "EGIN-E": EGINE, "EGIN-C": EGINC}
Epochs = Iterator[tuple[float, float]]  # CPU seconds of the steps and of the evaluation of each epoch


def our_epochs(model_class: Callable, dataset: GraphDataset, split: Split, batch_size: int) -> Epochs:
    options = TrainerOptions(batch_size=batch_size)
    scheduler = partial(torch.optim.lr_scheduler.StepLR, step_size=50)
    recipe = Recipe(model_class, partial(torch.optim.Adam, lr=0.001), scheduler, options, {})
    state = TrainState.create(model_class(dataset.info), recipe)
    task = TASKS[dataset.info.task].fit(dataset.labels[torch.as_tensor(split.train)], dataset.info)
    generator = torch.Generator().manual_seed(0)
    evaluator = Evaluator(dataset, split, options, task, state.ema, generator, use_test=True)
    loader = GraphLoader(dataset, split.train, batch_size)
    for epoch in count(1):
        start = time.process_time()
        train_one_epoch(state, loader.shuffled(generator), epoch, len(loader), options, task)
        trained = time.process_time()
        evaluator.evaluate(epoch)
        yield trained - start, time.process_time() - trained


def pyg_epochs(dataset: GraphDataset, split: Split, batch_size: int) -> Epochs:
    graphs = pyg_graphs(dataset)
    parts = [[graphs[i] for i in part] for part in (split.train, split.validation, split.test)]
    train, *others = (DataLoader(part, batch_size, shuffle=part is parts[0]) for part in parts)
    model = PyG(dataset.info, edges=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)
    while True:
        start = time.process_time()
        model.train()
        for batch in train:
            optimizer.zero_grad()
            cross_entropy(model(batch), batch.y).backward()
            optimizer.step()
        trained = time.process_time()
        model.eval()
        with torch.no_grad():
            for loader in others:
                torch.cat([model(batch) for batch in loader])
        yield trained - start, time.process_time() - trained


def measure(epochs: Epochs, number: int) -> tuple[float, float, float]:
    """Steps and evaluation of an epoch, the medians after the first, and the evaluation of the first."""
    (_, first), *later = (next(epochs) for _ in range(number + 1))
    steps, evaluation = (median(values) for values in zip(*later, strict=True))
    return steps, evaluation, first


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_dataset(parser)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3, help="after the first")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    torch.set_num_threads(1)
    dataset = load(options)
    order = np.random.default_rng(0).permutation(len(dataset))
    split = Split(*np.split(order, [8 * len(order) // 10, 9 * len(order) // 10]))
    print(
        f"{len(dataset):,} graphs, batches of {options.batch_size}; {processor_name()}, CPU seconds of an epoch\n"
    )
    print(
        "| model | steps | evaluation | of the steps, % | evaluation, first epoch | whole epoch | × PyG (aim) |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    sides = {"PyG GINE": pyg_epochs(dataset, split, options.batch_size)}
    sides |= {name: our_epochs(model, dataset, split, options.batch_size) for name, model in MODELS.items()}
    whole: dict[str, float] = {}
    for name, epochs in sides.items():
        steps, evaluation, first = measure(epochs, options.epochs)
        whole[name] = steps + evaluation
        ratio = whole["PyG GINE"] / whole[name]
        faster = f"{ratio:.2f} ({AIM:g})" if name == "EGIN-E" else f"{ratio:.2f}"
        share = f"{100 * evaluation / steps:.0f}"
        print(
            f"| {name} | {steps:.1f} | {evaluation:.1f} | {share} | {first:.1f} | {whole[name]:.1f} | {faster} |",
            flush=True,
        )
