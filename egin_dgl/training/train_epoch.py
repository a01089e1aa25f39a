"""What training changes, saved and restored as one; and one epoch of training steps."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from egin_dgl.data.loader import Batch
from egin_dgl.errors import ConfigError, EginError, TrainingError
from egin_dgl.evaluation.history import History
from egin_dgl.models.dispatch import TrainStep, make_train_step
from egin_dgl.runs.fold_dir import FoldDir, Progress
from egin_dgl.tasks import Task
from egin_dgl.training.ema import ModelEma
from egin_dgl.training.evaluator import compute_logits, diverged
from egin_dgl.training.flat_parameters import FlatParameters, make_optimizer
from egin_dgl.training.job import Recipe
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.parallel.ranks import ONE_RANK, Ranks

if TYPE_CHECKING:
    from torch.amp import GradScaler
else:  # torch.cuda.amp before torch 2.3
    GradScaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler

SAVED = ("model", "optimizer", "scheduler", "scaler", "ema")


@dataclass(frozen=True)
class TrainState:
    model: nn.Module
    parameters: FlatParameters
    optimizer: torch.optim.Optimizer
    scheduler: LRScheduler
    scaler: GradScaler
    ema: ModelEma
    fast_step: TrainStep | None  # of the accelerated path, made once: inspecting a model takes time

    @classmethod
    def create(cls, model: nn.Module, recipe: Recipe) -> "TrainState":
        options = recipe.options
        parameters = FlatParameters(model)
        try:
            optimizer = make_optimizer(recipe.make_optimizer, model, parameters)
            scheduler = recipe.make_scheduler(optimizer)
        except EginError:
            raise
        except (TypeError, ValueError, RuntimeError) as error:
            raise ConfigError(f"optimizer or scheduler: {error}") from error
        # fp16 gradients underflow without loss scaling; a disabled scaler does nothing.
        scaler = GradScaler(enabled=options.precision == "fp16")
        ema = ModelEma(model, parameters, options.ema_decay, precise_bn=options.bn_statistics != "running")
        fast_step = make_train_step(model.train(), options.fast) if options.precision == "fp32" else None
        return cls(model, parameters, optimizer, scheduler, scaler, ema, fast_step)

    def state_dict(self) -> dict[str, dict]:
        return {name: getattr(self, name).state_dict() for name in SAVED}

    def resume(self, progress: Progress, folder: FoldDir) -> tuple[History, list[Tensor]]:
        """Restore the state of a checkpoint; return its history and test logits."""
        try:
            for name in SAVED:
                getattr(self, name).load_state_dict(progress.states[name])
        except (KeyError, ValueError, RuntimeError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {str(error).strip().splitlines()[-1].strip()}"
            raise TrainingError(
                f"{folder.checkpoint}: not a checkpoint of this model and version ({reason}); {folder.remedy}"
            ) from error
        return progress.history, progress.test_logits


@dataclass(frozen=True)
class TrainMetrics:
    """Mean loss and monitored score of the training steps, before each update, and mean gradient norm."""

    loss: float
    score: float
    grad_norm: float


def train_one_epoch(
    state: TrainState,
    batches: Iterable[Batch],
    epoch: int,
    steps: int,
    options: TrainerOptions,
    task: Task,
    ranks: Ranks = ONE_RANK,
) -> TrainMetrics:
    """Take one optimizer step for each of `steps` batches; epochs count from 1. Of several ranks each has its share of a batch."""
    state.model.train()
    losses, outputs, labels, norms = [], [], [], []
    base_rates = [group["lr"] for group in state.optimizer.param_groups]
    warmup_steps = options.warmup_epochs * steps
    for step, batch in enumerate(batches, start=(epoch - 1) * steps + 1):
        if step <= warmup_steps:
            set_learning_rates(state.optimizer, [rate * (step / warmup_steps) for rate in base_rates])
        state.parameters.zero_grad()
        loss, found = compute_gradients(state, batch, options, task)
        if ranks.size > 1:
            weight = task.loss_weight(batch.labels, batch.weights)
            loss = ranks.average_gradients(state.parameters.grads, loss, weight)
        state.scaler.unscale_(state.optimizer)
        norms.append(state.parameters.clip_grad_norm(options.clip_grad_norm))
        state.scaler.step(state.optimizer)
        state.scaler.update()
        state.ema.update()
        losses.append(loss)
        outputs.append(found)
        labels.append(batch.labels)
    set_learning_rates(state.optimizer, base_rates)
    # Values are read from the device here, once per epoch, so that a GPU never waits for the CPU.
    values = torch.stack(losses).tolist()
    for step, value in enumerate(values, start=1):
        if not math.isfinite(value):
            raise diverged(f"the loss is {value} at epoch {epoch}, step {step}")
    sizes = ranks.sum(torch.tensor([len(own) for own in labels])).tolist()
    loss = sum(value * size for value, size in zip(values, sizes, strict=True)) / sum(sizes)
    found, known = ranks.gather(torch.cat(outputs)), ranks.gather(torch.cat(labels))
    score = task.metric(options.monitor)(task.decode(found).cpu(), known.cpu())
    return TrainMetrics(loss, score, float(torch.stack(norms).mean()))


def compute_gradients(
    state: TrainState, batch: Batch, options: TrainerOptions, task: Task
) -> tuple[Tensor, Tensor]:
    """Add the gradients of a batch to those of the parameters; return its loss and the model's outputs."""
    if not len(batch.labels):
        device = batch.labels.device
        return torch.zeros((), device=device), torch.zeros(0, batch.chunk.dataset.info.outputs, device=device)
    loss_fn = partial(loss_with_gradient, task, labels=batch.labels, weights=batch.weights)
    if state.fast_step and (result := state.fast_step(batch, loss_fn)):
        return result
    outputs = compute_logits(state.model, batch, options)
    loss = task.loss(outputs, batch.labels, True, batch.weights)
    state.scaler.scale(loss).backward()
    return loss.detach(), outputs.detach()


def loss_with_gradient(
    task: Task, outputs: Tensor, labels: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The training loss of outputs (B, outputs) and its gradient with respect to them."""
    with torch.enable_grad():
        outputs = outputs.detach().requires_grad_()
        loss = task.loss(outputs, labels, True, weights)
        (gradient,) = torch.autograd.grad(loss, outputs)
    return loss.detach(), gradient


def set_learning_rates(optimizer: torch.optim.Optimizer, rates: list[float]) -> None:
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
