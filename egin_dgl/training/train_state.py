"""What training changes: model, optimizer, scheduler, loss scaler, EMA; saved and restored as one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.history import History
from egin_dgl.runs.fold_dir import FoldDir, Progress
from egin_dgl.training.ema import ModelEma
from egin_dgl.training.flat_parameters import FlatParameters, make_optimizer
from egin_dgl.training.job import Recipe

if TYPE_CHECKING:
    from torch.amp import GradScaler
else:  # torch.cuda.amp before torch 2.3
    GradScaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler


@dataclass(frozen=True)
class TrainState:
    model: nn.Module
    parameters: FlatParameters
    optimizer: torch.optim.Optimizer
    scheduler: LRScheduler
    scaler: GradScaler
    ema: ModelEma

    @classmethod
    def create(cls, model: nn.Module, recipe: Recipe) -> "TrainState":
        options = recipe.options
        parameters = FlatParameters(model)
        optimizer = make_optimizer(recipe.make_optimizer, model, parameters)
        scheduler = recipe.make_scheduler(optimizer)
        # fp16 gradients underflow without loss scaling; a disabled scaler does nothing.
        scaler = GradScaler(enabled=options.precision == "fp16")
        ema = ModelEma(model, parameters, options.ema_decay, precise_bn=options.bn_statistics != "running")
        return cls(model, parameters, optimizer, scheduler, scaler, ema)

    @property
    def components(self) -> dict:
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "scaler": self.scaler,
            "ema": self.ema,
        }

    def state_dict(self) -> dict[str, dict]:
        return {name: component.state_dict() for name, component in self.components.items()}

    def resume(self, progress: Progress, folder: FoldDir) -> tuple[History, list[Tensor]]:
        """Restore the state of a checkpoint; return its history and test logits."""
        try:
            for name, component in self.components.items():
                component.load_state_dict(progress.states[name])
        except (KeyError, ValueError, RuntimeError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {str(error).strip().splitlines()[-1].strip()}"
            raise TrainingError(
                f"{folder.checkpoint}: not a checkpoint of this model and version ({reason}); {folder.remedy}"
            ) from error
        return progress.history, progress.test_logits
