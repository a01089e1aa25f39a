"""The knobs of a run that no model, dataset or optimizer declares itself, checked before anything runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypedDict

from egin_dgl.declared import Options
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.ranges import (
    LARGEST,
    BelowOne,
    Count,
    CountOrZero,
    File,
    Fraction,
    OneOf,
    Positive,
    Range,
    Seed,
    Such,
)
from egin_dgl.training.device import is_device

STATISTICS = ("precise", "sample", "running")
PRECISIONS = ("fp32", "bf16", "fp16")
MONITORED = tuple(name for name, metric in METRICS.items() if not metric.is_loss)


class AskedOfModels(TypedDict, total=False):
    """What a recipe of training asks of the models that have such options; read by their configurations."""

    scale_by_size: bool
    mlp_dropout: Fraction


@dataclass(frozen=True)
class TrainerOptions(Options):
    """See conf/trainer/default.yaml for what each means."""

    group: ClassVar[str] = "trainer"

    epochs: Count = 100
    batch_size: Count = 32
    patience: Count | None = None
    clip_grad_norm: Positive | None = None
    precision: Annotated[str, OneOf(PRECISIONS)] = "fp32"
    standardize: bool = False
    class_weights: Literal["balanced"] | None = None
    monitor: Annotated[str, OneOf(MONITORED)] = "accuracy"
    monitor_window: Count = 1
    ema_decay: BelowOne | None = None
    bn_statistics: Annotated[str, OneOf(STATISTICS)] = "precise"
    warmup_epochs: CountOrZero = 0
    fold_workers: Annotated[int, Range(1, 1024)] | None = None
    checkpoint_every: Count = 10
    fast: bool = True
    model: AskedOfModels | None = None

    @property
    def window(self) -> int:
        """Epochs that a choice averages over: no more than there are."""
        return min(self.monitor_window, self.epochs)


@dataclass(frozen=True)
class CvOptions(Options):
    """See conf/cv/ten_fold.yaml for what each means."""

    group: ClassVar[str] = "cv"

    k: Annotated[int, Range(2, LARGEST)] = 10
    repeats: Annotated[int, Range(1, 1000)] = 1
    validation: bool = True
    fold: CountOrZero | Sequence[CountOrZero] | None = None
    folds_file: File | None = None
    split_by: Literal["scaffold"] | None = None
    group_duplicates: bool = False
    grid: Mapping[str, Mapping[str, Sequence[Any]]] | None = None
    refit: bool = False
    holdout: bool = False


@dataclass(frozen=True)
class RunOptions(Options):
    """See conf/train.yaml for what each means."""

    group: ClassVar[str] = ""

    seed: Seed = 0
    device: Annotated[str, Such("auto, cpu, cuda or cuda:0, cuda:1, …", is_device)] = "auto"
    reproducible: Literal[False, "avx2", "any"] = False
    run: str | None = None
    trust: bool = False
    fold_curves: bool = False
    resume: None = None  # a word of the command by itself, which is settled before
