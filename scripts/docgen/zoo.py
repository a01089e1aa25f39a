"""A table of all models: paper, edge features, size, speed, and when to use them."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.loader import GraphLoader
from egin_dgl.models import GraphModel
from egin_dgl.models.dispatch import forward_batch


@dataclass(frozen=True)
class ZooRow:
    option: str  # name on the command line
    model: GraphModel
    relative_time: float  # of a training epoch, relative to the reference model

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def edge_usage(self) -> str:
        if self.model.uses_edges:
            return "yes" if self.model.uses_structure else "their sum"
        return "no"


def measure_zoo(
    makers: Mapping[str, Callable[[DatasetInfo], GraphModel]],
    dataset: GraphDataset,
    reference: str = "gin",
    epochs: int = 7,
    batch_size: int = 32,
) -> list[ZooRow]:
    """Build each model and time its training epochs.

    The models are timed in turn, epoch by epoch, and each is compared with the reference of the same turn, so that other
    load on the machine slows both. The result is the median over turns; a first turn warms up and is not counted.
    """
    if reference not in makers:
        raise ValueError(f"the reference must be one of {', '.join(makers)}, got {reference!r}")
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, got {epochs}")
    torch.manual_seed(0)
    models = {option: make(dataset.info) for option, make in makers.items()}
    loader = GraphLoader(dataset, range(len(dataset)), batch_size)
    turns = [
        {option: epoch_seconds(model, loader) for option, model in models.items()} for _ in range(1 + epochs)
    ][1:]
    return [
        ZooRow(option, model, statistics.median(turn[option] / turn[reference] for turn in turns))
        for option, model in models.items()
    ]


def epoch_seconds(model: nn.Module, loader: GraphLoader) -> float:
    """Time forward, backward and update on every batch, on the accelerated path where a model has one."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = list(loader)
    model.train()
    start = time.perf_counter()
    for batch in batches:
        optimizer.zero_grad()
        cross_entropy(forward_batch(model, batch), batch.labels).backward()
        optimizer.step()
    return time.perf_counter() - start


def zoo_table(rows: list[ZooRow], dataset: str) -> str:
    """The table in Markdown: models that use edge features first, each group sorted by time."""
    lines = [
        f"| model | name | paper | uses edges? | parameters on {dataset} | time per epoch, GIN = 1 | when to use it |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (row.edge_usage != "yes", row.relative_time)):
        model = row.model
        cells = [f"`{row.option}`", model.name, model.paper, row.edge_usage, f"{row.parameters:,}"]
        cells += [f"{row.relative_time:.1f}", model.when]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
