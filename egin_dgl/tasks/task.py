"""The interface of a task."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import Self

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.data.splits import Split
from egin_dgl.errors import ConfigError, did_you_mean
from egin_dgl.evaluation.conformal import summarize_conformal
from egin_dgl.evaluation.metrics import Metric, Metrics
from egin_dgl.evaluation.summary import Prediction
from egin_dgl.options import Loss

SMALLEST = 1e-300  # of a probability whose logarithm is taken


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
    pictures: ClassVar[tuple[str, ...]]  # of the predictions of a run, see `reporting.one_run.publish`
    has_probabilities: ClassVar[bool] = True  # predictions are probabilities, which a temperature calibrates
    evidence_name: ClassVar[str] = "log-odds"  # what `evidence` returns
    conformal_name: ClassVar[str] = "label sets"

    @classmethod
    def main(cls) -> Metric:
        """The metric that is monitored by default."""
        return next(iter(cls.metrics.values()))

    @classmethod
    def metric(cls, name: str) -> Metric:
        """A metric by its name; "auto" is the main one."""
        if name == "auto":
            return cls.main()
        if name in cls.metrics:
            return cls.metrics[name]
        valid, hint = ", ".join(cls.metrics), did_you_mean(name, cls.metrics)
        raise ConfigError(f"trainer.monitor: {name!r} is no metric of task={cls.name}; valid: {valid}{hint}")

    @classmethod
    def fit(cls, labels: Tensor, info: DatasetInfo, loss: Loss = "auto", balanced: bool = False) -> Self:
        """The task of a fold, fitted to its training labels; `balanced` weights classes by their frequency."""
        raise NotImplementedError

    def loss(
        self, outputs: Tensor, labels: Tensor, weighted: bool = False, graph_weights: Tensor | None = None
    ) -> Tensor:
        """Mean loss over the known labels, a scalar; `weighted` by the weights of classes, if any, as in training.

        `graph_weights` (B,) make it a weighted mean over graphs.
        """
        raise NotImplementedError

    def loss_weight(self, labels: Tensor, graph_weights: Tensor | None = None) -> Tensor:
        """Weight of a batch in the training loss of several: the denominator of `loss`. By default the known labels."""
        known = ~labels.isnan()
        return known.sum() if graph_weights is None else (known * graph_weights[:, None]).sum()

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
    def to_logits(cls, prediction: Tensor) -> Tensor:
        """Decoded outputs for which `predict` returns this, such as a mean over models."""
        raise NotImplementedError

    @classmethod
    def evidence(cls, logits: Tensor, output: int, temperature: float | None = None) -> Tensor:
        """What an explanation explains, (B,): the log-odds of a class or label, or a value."""
        raise NotImplementedError

    @classmethod
    def describe(cls, name: str, value: float) -> str:
        """A prediction of one class or target, for people."""
        return f"{name}, p = {value:.3f}"

    @classmethod
    def nonconformity(cls, prediction: Tensor, labels: Tensor) -> Tensor:
        """Scores (B, T) of what `predict` returned and labels, small where they agree, NaN where a label is unknown."""
        raise NotImplementedError

    @classmethod
    def conformal_columns(cls, prediction: Tensor, quantiles: Tensor, info: DatasetInfo) -> dict[str, list]:
        """Everything whose score is at most the quantile (T,) of its target: columns of intervals or label sets."""
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
    def frame_columns(cls, prediction: Tensor, info: DatasetInfo) -> dict[str, list]:
        """What `predict` returned, by the names of `columns`."""
        return dict(zip(cls.columns(info)[1], prediction.T.tolist(), strict=True))

    @classmethod
    def true_cells(cls, label: Tensor, info: DatasetInfo) -> list[str]:
        """The targets of one graph, in the columns of `columns`; empty where missing. By default numbers."""
        return format_numbers(label)

    @classmethod
    def predicted_cells(cls, prediction: Tensor, info: DatasetInfo) -> list[str]:
        """What `predict` returned for one graph, in the columns of `columns`. By default numbers."""
        return format_numbers(prediction)

    def to_dict(self) -> dict[str, Any]:
        """What `decode` needs, as a JSON object; weights are for training only."""
        return {}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return cls()


def baseline_score(
    task: type[Task], labels: Tensor, info: DatasetInfo, splits: Iterable[Split], monitor: str = "auto"
) -> float | None:
    """Score of the best constant prediction of each training set on its test set, the mean over folds; None if undefined."""
    metric, values = task.metric(monitor), []
    for split in splits:
        truth, constant = labels[split.test], task.constant(labels[split.train], info)
        values.append(metric(constant.expand(len(truth), -1), truth))
    defined = [value for value in values if math.isfinite(value)]
    return sum(defined) / len(defined) if defined else None


def score_predictions(task: type[Task], predictions: Sequence[Prediction], k: int) -> dict:
    """The conformal scores of test graphs, as `summarize_conformal` records them; `k` is the number of folds of a repeat."""
    values = torch.stack([task.predict(row.logits, row.temperature) for row in predictions])
    scores = task.nonconformity(values, torch.stack([row.label for row in predictions]))
    return summarize_conformal(scores, torch.tensor([row.fold for row in predictions]), k)


def per_target(prefix: str, info: DatasetInfo) -> list[str]:
    """Names of columns, one per target: the prefix alone for a single target."""
    names = info.target_names
    return [prefix] if len(names) == 1 else [f"{prefix}_{name}" for name in names]


def set_scores(probabilities: Tensor) -> Tensor:
    """1 − p of each of the last dimension's entries, 0 of the most probable, the first of equals."""
    best = probabilities.argmax(dim=-1, keepdim=True)
    return (1 - probabilities).scatter(-1, best, 0.0)


def join_members(members: Tensor, names: Sequence[str]) -> list[str]:
    """The names of the members of each row of a mask (B, names), joined by |."""
    return [
        "|".join(name for name, is_in in zip(names, row, strict=True) if is_in) for row in members.tolist()
    ]


def format_numbers(values: Tensor) -> list[str]:
    """Six digits of each number, empty for NaN."""
    return ["" if value != value else f"{value:.6g}" for value in values.reshape(-1).tolist()]


def masked_mean(values: Tensor, known: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean of the entries (B, T) that are known; 0, with a gradient of 0, if there is none. `weights` (B,) are of the rows."""
    if weights is None:
        return torch.where(known, values, 0.0).sum() / known.sum().clamp(min=1)
    shares = known * weights[:, None].to(values.dtype)
    return (torch.where(known, values, 0.0) * shares).sum() / shares.sum().clamp(min=1e-30)


def names_of(numbers: Sequence[int], names: Sequence[str]) -> list[str]:
    return ["" if number < 0 else names[number] for number in numbers]
