"""One epoch of training steps, and their loss."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from egin_dgl.data.loader import Batch
from egin_dgl.models.dispatch import TrainStep, make_train_step
from egin_dgl.training.evaluator import compute_logits, diverged
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.train_state import TrainState


@dataclass(frozen=True)
class TrainMetrics:
    """Mean loss and accuracy of the training steps, before each update, and mean gradient norm."""

    loss: float
    accuracy: float
    grad_norm: float


def train_one_epoch(
    state: TrainState,
    batches: Iterable[Batch],
    epoch: int,
    steps: int,
    options: TrainerOptions,
    class_weights: Tensor | None = None,
) -> TrainMetrics:
    """Take one optimizer step per batch.

    Args:
        state: model, optimizer and EMA, which are updated.
        batches: training batches.
        epoch: its number, from 1.
        steps: number of batches.
        options: precision, gradient clipping and warm-up.
        class_weights: (classes,), of the loss. Default: None, all 1.
    """
    state.model.train()
    fast_step = make_train_step(state.model, options.fast) if options.precision == "fp32" else None
    losses, correct, sizes, norms = [], [], [], []
    base_rates = [group["lr"] for group in state.optimizer.param_groups]
    warmup_steps = options.warmup_epochs * steps
    for step, batch in enumerate(batches, start=(epoch - 1) * steps + 1):
        if step <= warmup_steps:
            set_learning_rates(state.optimizer, [rate * (step / warmup_steps) for rate in base_rates])
        state.parameters.zero_grad()
        loss, logits = compute_gradients(state, batch, options, class_weights, fast_step)
        state.scaler.unscale_(state.optimizer)
        norms.append(state.parameters.clip_grad_norm(options.clip_grad_norm))
        state.scaler.step(state.optimizer)
        state.scaler.update()
        state.ema.update()
        losses.append(loss)
        correct.append((logits.argmax(dim=1) == batch.labels).sum())
        sizes.append(len(batch.labels))
    set_learning_rates(state.optimizer, base_rates)
    # Values are read from the device here, once per epoch, so that a GPU never waits for the CPU.
    values = torch.stack(losses).tolist()
    for step, value in enumerate(values, start=1):
        if not math.isfinite(value):
            raise diverged(f"the loss is {value} at epoch {epoch}, step {step}")
    graphs = sum(sizes)
    loss = sum(value * size for value, size in zip(values, sizes, strict=True)) / graphs
    return TrainMetrics(loss, int(torch.stack(correct).sum()) / graphs, float(torch.stack(norms).mean()))


def compute_gradients(
    state: TrainState,
    batch: Batch,
    options: TrainerOptions,
    class_weights: Tensor | None,
    fast_step: TrainStep | None,
) -> tuple[Tensor, Tensor]:
    """Add the gradients of a batch to those of the parameters; return its loss and logits."""
    loss_of = partial(cross_entropy_with_gradient, labels=batch.labels, weights=class_weights)
    if fast_step and (result := fast_step(batch, loss_of)):
        return result
    logits = compute_logits(state.model, batch, options)
    loss = cross_entropy(logits, batch.labels, class_weights)
    state.scaler.scale(loss).backward()
    return loss.detach(), logits.detach()


def cross_entropy_with_gradient(
    logits: Tensor, labels: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of logits (B, classes) and its gradient with respect to them."""
    with torch.enable_grad():
        logits = logits.detach().requires_grad_()
        loss = cross_entropy(logits, labels, weights)
        (gradient,) = torch.autograd.grad(loss, logits)
    return loss.detach(), gradient


def set_learning_rates(optimizer: torch.optim.Optimizer, rates: list[float]) -> None:
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


def balanced_class_weights(labels: Tensor, classes: int) -> Tensor:
    """w_c = n / (C n_c) for the C classes that occur, 0 for others: all classes have the same total weight."""
    counts = torch.bincount(labels, minlength=classes).float()
    present = counts > 0
    weights = torch.zeros(classes, device=labels.device)
    weights[present] = len(labels) / (present.sum() * counts[present])
    return weights
