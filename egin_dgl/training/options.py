"""The knobs of the training loop, checked before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import METRICS

STATISTICS = ("exact", "sample", "running")
PRECISIONS = ("fp32", "bf16", "fp16")
SELECT_BY = tuple(name for name, metric in METRICS.items() if not metric.is_loss)


@dataclass(frozen=True)
class TrainerOptions:
    """See conf/trainer/default.yaml for what each means."""

    epochs: int = 100
    batch_size: int = 32
    patience: int | None = None
    clip_grad_norm: float | None = None
    precision: str = "fp32"
    standardize: bool = False
    class_weights: str | None = None
    select_by: str = "accuracy"
    select_window: int = 1
    average: float | None = None
    statistics: str = "exact"
    warmup: int = 0
    workers: int | None = None
    checkpoint_every: int = 10
    model: Mapping | None = None  # read by the configurations of models

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "checkpoint_every", "select_window"):
            self.require(name, is_count(getattr(self, name)), "a positive integer")
        for name in ("patience", "workers"):
            value = getattr(self, name)
            self.require(name, value is None or is_count(value), "a positive integer or null")
        norm = self.clip_grad_norm
        number = isinstance(norm, (int, float)) and not isinstance(norm, bool) and norm > 0
        self.require("clip_grad_norm", norm is None or number, "a positive number or null")
        self.require("precision", self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}")
        weights = self.class_weights
        self.require("class_weights", weights in (None, "balanced"), "balanced or null")
        self.require("select_by", self.select_by in SELECT_BY, f"one of {', '.join(SELECT_BY)}")
        decay = self.average
        fraction = isinstance(decay, (int, float)) and not isinstance(decay, bool) and 0 <= decay < 1
        self.require("average", decay is None or fraction, "a number from 0 to below 1, or null")
        self.require("statistics", self.statistics in STATISTICS, f"one of {', '.join(STATISTICS)}")
        self.require("warmup", self.warmup == 0 or is_count(self.warmup), "a number of epochs from 0 on")
        self.require("standardize", isinstance(self.standardize, bool), "true or false")

    @property
    def window(self) -> int:
        """Epochs that a choice averages over: no more than there are."""
        return min(self.select_window, self.epochs)

    def require(self, name: str, valid: bool, wanted: str) -> None:
        if not valid:
            raise ConfigError(f"trainer.{name} must be {wanted}, got {getattr(self, name)!r}")


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
