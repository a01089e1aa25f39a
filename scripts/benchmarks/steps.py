"""Whole training steps beside the same architecture in PyG and DGL, and relative to the matrix products alone.

    python scripts/benchmark.py steps [--datasets MUTAG,AIDS] [--batch-size 32] [--turns 50]

A step is the assembly of a batch, forward, backward and a fused Adam. The sides take turns, step by step, in one thread; ratios
are those of medians. "plain" is egin_dgl with autograd and one tensor per parameter; "trained" is a step as the trainer runs it,
with all parameters in one tensor and hand-written gradients of the fusible blocks.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import torch
from peers import DGL, HIDDEN, LAYERS, PyG, bare_products, dgl_batches, pyg_batches
from torch import nn
from torch.nn.functional import cross_entropy

from egin_dgl.data import GraphDataset, load_tu
from egin_dgl.data.loader import GraphLoader
from egin_dgl.errors import DataError
from egin_dgl.models import EGIN, EGINC, EGINE, EGINM, GIN
from egin_dgl.models.dispatch import forward_batch, make_train_step
from egin_dgl.reproducibility import processor_name
from egin_dgl.tasks import Multiclass
from egin_dgl.training.flat_parameters import FlatParameters
from egin_dgl.training.train_epoch import loss_with_gradient

OURS = {"EGIN": EGIN, "EGIN-E": EGINE, "EGIN-C": EGINC, "EGIN-M": EGINM, "GIN": GIN}
DATASETS = ("MUTAG", "Cuneiform", "AIDS", "COX2_MD")
# The goals: times as fast as PyG; 1.5 times as much against DGL's GINE.
TARGETS = {
    "EGIN": (2.0, 2.2, 2.0, 6.0),
    "EGIN-E": (1.6, 1.5, 1.6, 3.0),
    "EGIN-C": (1.1, 1.0, 1.1, 1.0),
    "EGIN-M": (1.0, 1.0, 1.0, 1.0),
    "GIN": (1.5, 1.5, 1.5, 2.0),
}


def our_batches(dataset: GraphDataset, batch_size: int) -> Iterator:
    loader = GraphLoader(dataset, range(len(dataset) // batch_size * batch_size), batch_size)
    generator = torch.Generator().manual_seed(0)
    while True:
        for batch in loader.shuffled(generator):
            yield batch, batch.labels


def stepper(model: nn.Module, batches: Iterator, call: Callable) -> Callable[[], None]:
    """A function that takes one training step."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        batch, labels = next(batches)
        optimizer.zero_grad(set_to_none=True)
        cross_entropy(call(model, batch), labels).backward()
        optimizer.step()

    return step


def trained_stepper(model: nn.Module, batches: Iterator) -> Callable[[], None]:
    """A function that takes one step as training does."""
    model.train()
    weights = FlatParameters(model)
    optimizer = torch.optim.Adam(weights.tensors, lr=1e-3, fused=True)
    fused_step = make_train_step(model)

    def step() -> None:
        batch, labels = next(batches)
        weights.zero_grad()
        if fused_step(batch, partial(loss_with_gradient, Multiclass(), labels=labels)) is None:
            cross_entropy(forward_batch(model, batch), labels).backward()
        optimizer.step()

    return step


def sides(dataset: GraphDataset, batch_size: int) -> dict[str, Callable[[], None]]:
    info = dataset.info
    found = {}
    for name, make in OURS.items():
        models = [make(info, hidden_dim=HIDDEN, num_layers=LAYERS) for _ in range(2)]
        found[f"{name} plain"] = stepper(models[0], our_batches(dataset, batch_size), forward_batch)
        found[name] = trained_stepper(models[1], our_batches(dataset, batch_size))
    for name, edges in (("PyG GINE", True), ("PyG GIN", False)):
        found[name] = stepper(PyG(info, edges), pyg_batches(dataset, batch_size), call_model)
    found["DGL GINE"] = stepper(DGL(info), dgl_batches(dataset, batch_size), call_model)
    rows = round(len(dataset.node_feats) / len(dataset) * batch_size)
    first = info.node_dim + info.edge_dim
    sizes = [(first if layer == 0 else HIDDEN + info.edge_dim, HIDDEN) for layer in range(LAYERS)]
    found["products"] = bare_products(rows, [pair for size in sizes for pair in (size, (HIDDEN, HIDDEN))])
    return found


def call_model(model: nn.Module, batch):
    return model(batch)


def measure(functions: dict[str, Callable[[], None]], turns: int) -> dict[str, tuple[float, float]]:
    """Median milliseconds of a call, of the processor and on the wall."""
    for function in functions.values():
        for _ in range(10):
            function()
    times = {name: [] for name in functions}
    for _ in range(turns):
        for name, function in functions.items():
            wall, processor = time.perf_counter(), time.process_time()
            function()
            times[name].append((time.process_time() - processor, time.perf_counter() - wall))
    return {
        name: tuple(statistics.median(column) * 1e3 for column in zip(*rows, strict=True))
        for name, rows in times.items()
    }


def table(found: dict[str, dict[str, tuple[float, float]]]) -> str:
    """Ratios of processor time in Markdown; above 1 we are faster, in bold where less than what was aimed at."""
    lines = [
        f"| × as fast (aim) | {' | '.join(found)} |",
        "|---|" + "---|" * len(found),
    ]
    for name, targets in TARGETS.items():
        for other, factor in (("PyG GIN" if name == "GIN" else "PyG GINE", 1.0), ("DGL GINE", 1.5)):
            cells = []
            for dataset, times in found.items():
                ratio = times[other][0] / times[name][0]
                target = targets[DATASETS.index(dataset)] * factor
                text = f"{ratio:.2f}" if ratio >= target else f"**{ratio:.2f}**"
                cells.append(f"{text} ({target:.2g})")
            lines.append(f"| {name} / {other} | {' | '.join(cells)} |")
    over = [f"{times['EGIN'][0] / times['products'][0]:.1f}" for times in found.values()]
    lines += [f"| EGIN over products | {' | '.join(over)} |", ""]
    lines += ["| ms, processor / wall | " + " | ".join(found) + " |", "|---|" + "---|" * len(found)]
    for name in next(iter(found.values())):
        cells = [f"{times[name][0]:.2f} / {times[name][1]:.2f}" for times in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--turns", type=int, default=50)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = {}
    for name in options.datasets.split(","):
        try:
            dataset = load_tu(name, url=None)
        except DataError as error:
            print(f"{name} left out: {error}")
            continue
        found[name] = measure(sides(dataset, options.batch_size), options.turns)
    print(f"{processor_name()}, one thread, batches of {options.batch_size}\n\n{table(found)}")
