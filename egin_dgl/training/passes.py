"""Passes over batches: one that trains, and those that only look."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from egin_dgl.data.dataset import GraphDataset, Indices
from egin_dgl.data.loader import Batch, ChainLoader, GraphLoader
from egin_dgl.errors import TrainingError
from egin_dgl.models.dispatch import TrainStep, embed_batch, forward_batch, make_train_step
from egin_dgl.training.ema import ModelEma
from egin_dgl.training.flat_parameters import FlatParameters, take_step
from egin_dgl.training.options import TrainerOptions

if TYPE_CHECKING:
    from torch.amp import GradScaler
else:  # it moved in torch 2.3
    GradScaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler

MOST_ROWS = 2**18  # nodes and edges that a measuring pass takes at once


@dataclass(frozen=True)
class Evaluation:
    loss: float
    accuracy: float
    logits: Tensor  # on the CPU

    @classmethod
    def of_nothing(cls, graphs: int, classes: int) -> "Evaluation":
        """Of a part that is empty, or was not read."""
        return cls(math.nan, math.nan, torch.full((graphs, classes), math.nan))


@dataclass(frozen=True)
class TrainingState:
    """All that a step changes, and what it goes by."""

    model: nn.Module
    weights: FlatParameters
    evaluated: ModelEma
    optimizer: torch.optim.Optimizer
    scaler: GradScaler
    options: TrainerOptions
    class_weights: Tensor | None = None

    def epoch(self, batches: Iterable[Batch], number: int, steps: int) -> tuple[float, float, float]:
        """One pass over the training part in `steps` batches: loss and accuracy as seen on the way, mean gradient norm.

        Nothing is read from the device before the end, so that a GPU never waits.
        """
        self.model.train()
        by_hand = make_train_step(self.model, self.options.fast) if self.options.precision == "fp32" else None
        losses, correct, sizes, norms = [], [], [], []
        rates = [group["lr"] for group in self.optimizer.param_groups]
        for step, batch in enumerate(batches):
            self.warm_up(rates, (number - 1) * steps + step + 1, steps)
            self.weights.clear_gradients()
            loss, logits = self.gradients(batch, by_hand)
            self.scaler.unscale_(self.optimizer)
            norms.append(self.weights.clip_gradients(self.options.clip_grad_norm))
            if self.scaler.is_enabled():
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                take_step(self.optimizer)
            self.evaluated.step()
            losses.append(loss)
            correct.append((logits.argmax(dim=1) == batch.labels).sum())
            sizes.append(len(batch.labels))
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        values = torch.stack(losses).tolist()
        for step, value in enumerate(values, start=1):
            if not math.isfinite(value):
                raise diverged(f"the loss is {value} at epoch {number}, step {step}")
        seen = sum(sizes)
        loss = sum(value * size for value, size in zip(values, sizes, strict=True)) / seen
        return loss, int(torch.stack(correct).sum()) / seen, float(torch.stack(norms).mean())

    def gradients(self, batch: Batch, by_hand: TrainStep | None) -> tuple[Tensor, Tensor]:
        """Those of a batch added to the weights' own; its loss and class scores."""
        loss_of = partial(cross_entropy_with_gradient, labels=batch.labels, weights=self.class_weights)
        if by_hand and (done := by_hand(batch, loss_of)):
            return done
        scores = compute_logits(self.model, batch, self.options)
        loss = cross_entropy(scores, batch.labels, self.class_weights)
        self.scaler.scale(loss).backward()
        return loss.detach(), scores.detach()

    def warm_up(self, rates: Sequence[float], step: int, steps: int) -> None:
        """The learning rate rises in a line over the first `warmup_epochs` epochs; `step` counts from 1."""
        if step <= self.options.warmup_epochs * steps + 1:
            share = min(1.0, step / max(1, self.options.warmup_epochs * steps))
            for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * share


def diverged(what: str) -> TrainingError:
    return TrainingError(
        f"{what}: lower optimizer.lr, set trainer.clip_grad_norm=1, or trainer.standardize=true for attributes of large values"
    )


def cross_entropy_with_gradient(
    scores: Tensor, labels: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of class scores (B, classes) and its gradient by them: the operations that autograd itself calls."""
    aten, mean = torch.ops.aten, 1
    log_p = scores.log_softmax(dim=1)
    loss, total = aten.nll_loss_forward.default(log_p, labels, weights, mean, -100)
    to_log_p = aten.nll_loss_backward.default(loss.new_ones(()), log_p, labels, weights, mean, -100, total)
    return loss, aten._log_softmax_backward_data.default(to_log_p, log_p, 1, scores.dtype)


def compute_logits(model: nn.Module, batch: Batch, options: TrainerOptions) -> Tensor:
    """Class scores (B, classes) in full precision, computed in the precision that was asked for."""
    with mixed_precision(batch.labels.device, options):
        return forward_batch(model, batch, options.fast).float()


@torch.no_grad()
def evaluate(model: nn.Module, loader: GraphLoader | ChainLoader, options: TrainerOptions) -> Evaluation:
    model.eval()
    scores = torch.cat([compute_logits(model, batch, options) for batch in loader])
    return judged(scores, torch.cat([batch.labels for batch in loader]))


def judged(scores: Tensor, labels: Tensor) -> Evaluation:
    """What class scores (B, classes) are worth, given the classes (B,)."""
    correct = int((scores.argmax(dim=1) == labels).sum())
    return Evaluation(cross_entropy(scores, labels).item(), correct / len(labels), scores.cpu())


@torch.no_grad()
def embed(model: nn.Module, loader: GraphLoader, fast: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings, labels and predictions of all graphs of a loader, on the CPU."""
    model.eval()
    parts = []
    for batch in loader:
        predicted = forward_batch(model, batch, fast).argmax(dim=1)
        parts.append((embed_batch(model, batch, fast), batch.labels, predicted))
    embeddings, labels, predictions = (torch.cat(part).cpu() for part in zip(*parts, strict=True))
    return embeddings, labels, predictions


def mixed_precision(device: torch.device, options: TrainerOptions) -> torch.autocast:
    dtype = torch.float16 if options.precision == "fp16" else torch.bfloat16
    return torch.autocast(device.type, dtype=dtype, enabled=options.precision != "fp32")


def precise_bn_batches(
    dataset: GraphDataset, graphs: Indices, sample: bool = False, generator: torch.Generator | None = None
) -> ChainLoader:
    """The graphs in batches of at most MOST_ROWS nodes and edges, or of one graph; as a `sample`, one such batch drawn at
    random, in the order of the graphs."""
    measured = torch.as_tensor(graphs, dtype=torch.int64)
    sizes = (dataset.node_offsets.diff() + dataset.edge_offsets.diff()).cpu()
    if sample:
        drawn = measured[torch.randperm(len(measured), generator=generator)]
        measured = drawn[: next(iter(runs_within(sizes[drawn], MOST_ROWS)), 0)].sort().values
    runs = list(runs_within(sizes[measured], MOST_ROWS))
    return ChainLoader([GraphLoader(dataset, run, len(run)) for run in measured.split(runs)])


def runs_within(sizes: Tensor, most: int) -> Iterator[int]:
    """Cut sizes (G,) into runs: how many in a row are together no more than `most`, or a single one that is."""
    ends = sizes.cumsum(0)
    start = before = 0
    while start < len(sizes):
        end = max(start + 1, int(torch.searchsorted(ends, before + most, right=True)))
        yield end - start
        start, before = end, int(ends[end - 1])


def all_batches(dataset: GraphDataset) -> ChainLoader:
    """All graphs, in order."""
    return precise_bn_batches(dataset, range(len(dataset)))
