"""Options of a run that no model, dataset or optimizer declares. The files in conf/ explain each."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from egin_dgl.options import (
    MAX_COUNT,
    BelowOne,
    Count,
    CountOrZero,
    Device,
    File,
    Flag,
    Fraction,
    ListOf,
    Loss,
    Options,
    Positive,
    Seed,
    TaskOption,
    parse_bool,
)

Monitor = Literal[
    "auto",
    "rmse",
    "mae",
    "r2",
    "spearman",
    "auroc",
    "average_precision",
    "accuracy",
    "balanced_accuracy",
    "log_loss",
    "brier",
    "f1_macro",
    "mcc",
    "ece",
]


class ModelDefaults(TypedDict, total=False):
    """Values that the configurations of models refer to, for models that have such options."""

    scale_by_size: Flag
    mlp_dropout: Fraction


class TrainerOptions(Options):
    """Options of the group `trainer`; see conf/trainer/default.yaml."""

    group: ClassVar[str] = "trainer"

    epochs: Count = 100
    batch_size: Count = 32
    patience: Count | None = None
    clip_grad_norm: Positive | None = None
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    standardize: Annotated[Literal["auto", True, False], BeforeValidator(parse_bool)] = "auto"
    class_weights: Literal["balanced"] | None = None
    loss: Loss = "auto"
    monitor: Monitor = "auto"
    monitor_window: Count = 1
    ema_decay: BelowOne | None = None
    bn_statistics: Literal["precise", "sample", "running"] = "precise"
    warmup_epochs: CountOrZero = 0
    fold_workers: Annotated[int, Field(ge=1, le=1024)] | None = None
    ranks: Literal["auto"] | Annotated[int, Field(ge=1, le=1024)] = "auto"
    checkpoint_every: Count = 10
    fast: Flag = True
    model: ModelDefaults | None = None

    @property
    def window(self) -> int:
        """Epochs over which the monitored metric is averaged: at most those of the run."""
        return min(self.monitor_window, self.epochs)


class CvOptions(Options):
    """Options of the group `cv`; see conf/cv/ten_fold.yaml."""

    group: ClassVar[str] = "cv"

    k: Annotated[int, Field(ge=2, le=MAX_COUNT)] = 10
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    validation: Flag = True
    fold: CountOrZero | ListOf[CountOrZero] | None = None
    folds_file: File | None = None
    split_by: Literal["scaffold", "scaffold_size"] | None = None
    group_duplicates: Flag = False
    grid: Mapping[str, Mapping[str, ListOf[Any]]] | None = None
    refit: Flag = False
    holdout: Flag = False


class RunOptions(Options):
    """Options outside of groups; see conf/train.yaml."""

    task: TaskOption = "auto"
    seed: Seed = 0
    device: Device = "auto"
    reproducible: Annotated[Literal[False, "avx2", "any"], BeforeValidator(parse_bool)] = False
    run: str | None = None
    trust: Flag = False
    dry_run: Flag = False
    fold_curves: Flag = False
    resume: None = None  # settled before a configuration is composed
