"""How the time and memory of a training step grow, and what a large set takes.

    python scripts/benchmark.py growth [--models EGIN,EGIN-E,EGIN-C] [--graphs 100000]

On random graphs of 20 nodes, one size at a time is doubled several times: graphs in a batch, edges of a node, hidden features,
features of an edge. Exponents are fitted to the larger half of the points: 1 means twice the time for twice the size. Memory is
the peak of a step above that before it, each measured in a new process. Then an epoch of `bonds` with --graphs graphs, as
`dataset=bonds dataset.graphs=…` trains it, and the extrapolation of the fit over its sizes to a million graphs.
"""

import argparse
import ctypes
import gc
import math
import multiprocessing
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from steps import OURS, our_batches, trained_stepper

from egin_dgl.data import DatasetInfo, GraphDataset, bonds
from egin_dgl.models import EGINE
from egin_dgl.reproducibility import processor_name

NODES = 20
START = {"graphs": 32, "edges": 4, "hidden": 64, "edge_features": 4}
GROWING = {
    "graphs": (64, 128, 256, 512, 1024),
    "edges": (2, 4, 8, 16, 32),
    "hidden": (64, 128, 256, 512),
    "edge_features": (4, 8, 16, 32, 64),
}
MOST_GIB = 3.0


def random_graphs(graphs: int, edges: int, edge_features: int) -> GraphDataset:
    """Edges of several types, `edges` into each node from anywhere in its graph."""
    random = torch.Generator().manual_seed(0)
    nodes = graphs * NODES
    dst = torch.arange(nodes).repeat_interleave(edges)
    src = dst // NODES * NODES + torch.randint(NODES, (len(dst),), generator=random)
    return GraphDataset(
        info=DatasetInfo(8, edge_features, 2, "random", graphs),
        labels=torch.arange(graphs) % 2,
        node_offsets=torch.arange(graphs + 1) * NODES,
        edge_offsets=torch.arange(graphs + 1) * NODES * edges,
        src=src,
        dst=dst,
        node_feats=torch.randn(nodes, 8, generator=random),
        edge_feats=torch.eye(edge_features)[torch.randint(edge_features, (len(dst),), generator=random)],
    )


def step_cost(model: str, sizes: dict[str, int], turns: int) -> tuple[float, float]:
    """Milliseconds of a step, and MiB at its peak above what was there before."""
    data = random_graphs(sizes["graphs"], sizes["edges"], sizes["edge_features"])
    made = OURS[model](data.info, hidden_dim=sizes["hidden"], num_layers=4)
    step = trained_stepper(made, our_batches(data, sizes["graphs"]))
    step()  # computes the constants of the dataset
    before = reset_peak()
    times = []
    for _ in range(turns):
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    return statistics.median(times) * 1e3, (peak() - before) / 2**20


def epoch_cost(graphs: int) -> tuple[float, float]:
    """Seconds of an epoch of EGIN-E on `bonds`, and GiB of the whole process at its peak."""
    data = bonds(graphs=graphs)
    step = trained_stepper(EGINE(data.info), our_batches(data, 32))
    start = time.process_time()
    for _ in range(graphs // 32):
        step()
    return time.process_time() - start, peak() / 2**30


def reset_peak() -> float:
    """Forget the peak so far, and give back what is free; the memory in use, in bytes."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def in_process(function: Callable, *arguments):
    """What it returns, in a process that has computed nothing before; this one has no thread that a fork would lose."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, arguments)


def exponent(sizes: tuple[int, ...], values: list[float]) -> float:
    """Of the larger half: the slope of log value over log size."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(np.maximum(values[half:], 1e-9)), 1)[0])


def table(models: list[str], turns: int) -> str:
    lines = ["| exponent of time / memory | " + " | ".join(GROWING) + " |", "|---|" + "---:|" * len(GROWING)]
    for model in models:
        cells = []
        for name, sizes in GROWING.items():
            found = [in_process(step_cost, model, {**START, name: size}, turns) for size in sizes]
            times, memory = map(list, zip(*found, strict=True))
            cells.append(f"{exponent(sizes, times):.2f} / {exponent(sizes, memory):.2f}")
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines)


def outer_products(turns: int) -> str:
    """EGIN-C beside the E × p × q numbers that its messages would be, one by one."""
    sizes = {"graphs": 128, "edges": 16, "hidden": 128, "edge_features": 32}
    _, mib = in_process(step_cost, "EGIN-C", sizes, turns)
    edges = sizes["graphs"] * NODES * sizes["edges"]
    whole = edges * sizes["hidden"] * sizes["edge_features"] * 4 / 2**20
    return (
        f"EGIN-C, {edges:,} edges × {sizes['hidden']} × {sizes['edge_features']} = {whole:,.0f} MiB of messages: "
        f"a whole step of four layers takes {mib:,.0f} MiB"
    )


def large(graphs: int) -> str:
    """An epoch of a large set, and a million graphs from the fit over its sizes."""
    sizes = tuple(graphs // part for part in (8, 4, 2, 1))
    seconds, gib = zip(*(in_process(epoch_cost, size) for size in sizes), strict=True)
    per_graph, base = np.polyfit(sizes, gib, 1)
    grows = math.log(seconds[-1] / seconds[0]) / math.log(sizes[-1] / sizes[0])
    million = seconds[-1] * (1e6 / graphs) ** grows
    return (
        f"bonds, {graphs:,} graphs, EGIN-E: an epoch of steps {seconds[-1]:.0f} s of one core, peak {gib[-1]:.2f} GiB "
        f"(at most {MOST_GIB:g} are wanted); a million graphs, from the fit: {million:.0f} s, "
        f"{base + 1e6 * per_graph:.1f} GiB"
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default="EGIN,EGIN-E,EGIN-C")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--graphs", type=int, default=100_000, help="of the large set")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    if not os.path.exists("/proc/self/clear_refs"):
        sys.exit("error: peak memory is measured by Linux's /proc, which is not here")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(processor_name(), flush=True)
    print(f"\n{table(options.models.split(','), options.turns)}", flush=True)
    print(f"\n- {outer_products(options.turns)}", flush=True)
    print(f"- {large(options.graphs)}")
