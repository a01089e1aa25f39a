"""The parts of a training step: matrix products, which bound it from below, and the rest.

    python scripts/benchmark.py parts [--datasets MUTAG,AIDS] [--models EGIN,EGIN-E] [--batch-size 32] [--turns 30]

The larger operations of a few steps are recorded with their arguments, and those of each kind are then timed separately. The
remainder of a whole step is views, new tensors, small sums and Python. (torch's profiler shows the same kinds, but its overhead
for a small operation is about the time of the operation.)
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import partial

import torch
from peers import HIDDEN, LAYERS
from steps import DATASETS, OURS, measure, our_batches, trained_stepper
from torch.utils._python_dispatch import TorchDispatchMode

from egin_dgl.data import GraphDataset, load_tu
from egin_dgl.errors import DataError
from egin_dgl.reproducibility import processor_name

STEPS = 5  # averaged, as some work is done for several batches at once
KINDS = {
    "matrix products": {"mm", "addmm", "addmm_", "bmm", "baddbmm"},
    "batch normalisation": {"native_batch_norm", "native_batch_norm_backward"},
    "sums over neighbours and graphs": {"_embedding_bag_forward_only"},
    "ReLU": {"relu", "relu_", "threshold_backward"},
    "rows gathered, laid side by side": {"index_select", "index", "cat", "stack", "copy_", "clone"},
    "Adam": {"_fused_adam_"},
}
REST, WHOLE = "small operations and Python", "whole step"


class OperationRecorder(TorchDispatchMode):
    """The operations of each kind, with their arguments."""

    def __init__(self):
        super().__init__()
        self.calls: dict[str, list[tuple]] = defaultdict(list)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        for kind, names in KINDS.items():
            if name in names:
                self.calls[kind].append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def parts(step: Callable[[], None], turns: int) -> dict[str, float]:
    """Milliseconds of a step, by kind."""
    for _ in range(10):
        step()
    with OperationRecorder() as recorder:
        for _ in range(STEPS):
            step()
    runs = {kind: partial(replay, recorder.calls[kind]) for kind in KINDS}
    times = measure({**runs, WHOLE: lambda: [step() for _ in range(STEPS)]}, turns)
    found = {kind: processor / STEPS for kind, (processor, _) in times.items()}
    return {**found, REST: found[WHOLE] - sum(found[kind] for kind in KINDS)}


@torch.no_grad()
def replay(calls: list[tuple]) -> None:
    for func, args, kwargs in calls:
        func(*args, **kwargs)


def measured(dataset: GraphDataset, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    found = {}
    for name in options.models.split(","):
        model = OURS[name](dataset.info, hidden_dim=HIDDEN, num_layers=LAYERS)
        found[name] = parts(trained_stepper(model, our_batches(dataset, options.batch_size)), options.turns)
    return found


def table(found: dict[str, dict[str, dict[str, float]]]) -> str:
    models = list(next(iter(found.values())))
    lines = [f"| ms, {' / '.join(models)} | {' | '.join(found)} |", "|---|" + "---|" * len(found)]
    for kind in [*KINDS, REST, WHOLE]:
        cells = [" / ".join(f"{times[model][kind]:.2f}" for model in models) for times in found.values()]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--models", default="EGIN,EGIN-E", help=f"some of {', '.join(OURS)}")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--turns", type=int, default=30)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # Repeated in-place operations may reach denormal numbers, which are slow.
    torch.set_flush_denormal(True)
    found = {}
    for name in options.datasets.split(","):
        try:
            found[name] = measured(load_tu(name, url=None), options)
        except DataError as error:
            print(f"{name} left out: {error}")
    print(f"{processor_name()}, one thread, batches of {options.batch_size}\n\n{table(found)}")
