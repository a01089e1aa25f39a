"""The interface of a task."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import Self

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.splits import Split
from egin_dgl.errors import ConfigError, did_you_mean
from egin_dgl.evaluation.metrics import Metric, Metrics
from egin_dgl.options import Loss


@dataclass(frozen=True, eq=False)
class Task:
    """How targets are learnt and predicted. A subclass holds what a fold fits to its training labels.

    A model returns `outputs` (B, outputs). `decode` turns them into what is stored and scored: logits of classification,
    values of a regression in their units. `predict` turns these into what people read: probabilities or values.

    Labels are those of `GraphDataset`: (B,) numbers of classes, or (B, T) with NaN where a target is missing.
    """

    name: ClassVar[str]
    metrics: ClassVar[Metrics]
    losses: ClassVar[tuple[Loss, ...]] = ("auto",)  # valid values of `trainer.loss`
    baseline: ClassVar[str]  # name of the best constant prediction
    has_probabilities: ClassVar[bool] = True  # predictions are probabilities, which a temperature calibrates

    @classmethod
    def main(cls) -> Metric:
        """The metric that is recorded at every epoch and read by protocols."""
        return next(iter(cls.metrics.values()))

    @classmethod
    def metric(cls, name: str) -> Metric:
        """A metric by its name; "auto" is the main one."""
        if name == "auto":
            return cls.main()
        if name in cls.metrics:
            return cls.metrics[name]
        valid, hint = ", ".join(cls.metrics), did_you_mean(name, cls.metrics)
        raise ConfigError(f"{name!r} is no metric of task={cls.name}; valid: {valid}{hint}")

    @classmethod
    def fit(cls, labels: Tensor, info: DatasetInfo, loss: Loss = "auto", balanced: bool = False) -> Self:
        """The task of a fold, fitted to its training labels; `balanced` weights classes by their frequency."""
        raise NotImplementedError

    def loss(self, outputs: Tensor, labels: Tensor, weighted: bool = False) -> Tensor:
        """Mean loss over the known labels, a scalar; `weighted` by the weights of classes, if any, as in training."""
        raise NotImplementedError

    def encode(self, labels: Tensor) -> Tensor:
        """Labels as a model learns them: the inverse of `decode`."""
        return labels

    def decode(self, outputs: Tensor) -> Tensor:
        """Outputs of a model as logits, or as values in the units of the targets."""
        return outputs

    @classmethod
    def predict(cls, logits: Tensor, temperature: float | None = None) -> Tensor:
        """Probabilities or values of decoded outputs, in double precision."""
        raise NotImplementedError

    @classmethod
    def decide(cls, logits: Tensor) -> Tensor:
        """The predicted class (B,), labels (B, T) or values (B, T) of decoded outputs."""
        raise NotImplementedError

    @classmethod
    def constant(cls, labels: Tensor, info: DatasetInfo) -> Tensor:
        """The best constant prediction for training labels, as decoded outputs (1, outputs)."""
        raise NotImplementedError

    @classmethod
    def columns(cls, info: DatasetInfo) -> tuple[list[str], list[str]]:
        """Names of the columns of a table of predictions: of the true targets, and of the predictions."""
        raise NotImplementedError

    @classmethod
    def true_cells(cls, label: Tensor, info: DatasetInfo) -> list[str]:
        """The targets of one graph, in the columns of `columns`; empty where missing."""
        raise NotImplementedError

    @classmethod
    def predicted_cells(cls, prediction: Tensor, info: DatasetInfo) -> list[str]:
        """What `predict` returned for one graph, in the columns of `columns`."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """What `decode` needs, as a JSON object; weights are for training only."""
        return {}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return cls()


def baseline_score(
    task: type[Task], labels: Tensor, info: DatasetInfo, splits: Iterable[Split]
) -> float | None:
    """Score of the best constant prediction of each training set on its test set, the mean over folds; None if undefined."""
    main, values = task.main(), []
    for split in splits:
        truth, constant = labels[split.test], task.constant(labels[split.train], info)
        values.append(main(constant.expand(len(truth), -1), truth))
    defined = [value for value in values if value == value]
    return sum(defined) / len(defined) if defined else None


def per_target(prefix: str, info: DatasetInfo) -> list[str]:
    """Names of columns, one per target: the prefix alone for a single target."""
    names = info.target_names
    return [prefix] if len(names) == 1 else [f"{prefix}_{name}" for name in names]


def format_numbers(values: Tensor) -> list[str]:
    """Six digits of each number, empty for NaN."""
    return ["" if value != value else f"{value:.6g}" for value in values.reshape(-1).tolist()]


def masked_mean(values: Tensor, known: Tensor) -> Tensor:
    """Mean of the entries that are known; 0, with a gradient of 0, if there is none."""
    return torch.where(known, values, 0.0).sum() / known.sum().clamp(min=1)


def names_of(numbers: Sequence[int], names: Sequence[str]) -> list[str]:
    return ["" if number < 0 else names[number] for number in numbers]
