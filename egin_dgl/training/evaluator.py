"""Evaluation of a model on the validation and test sets after every epoch.

Precise BN needs a pass over the training set as well. If training, validation and test set fit in one batch and the
model supports it, BatchNorm statistics and all logits come from a single pass.
"""

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.loader import Batch, ChainLoader, GraphLoader
from egin_dgl.data.splits import Split
from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.metrics import Metric
from egin_dgl.models.dispatch import embed_batch, forward_batch, forward_with_precise_bn
from egin_dgl.tasks import Task
from egin_dgl.training.ema import ModelEma
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.precise_bn import bounded_batches, sample_batch


@dataclass(frozen=True)
class SplitResult:
    """Loss, monitored score and decoded outputs (on the CPU) of one split; NaN if it is empty or was not evaluated."""

    loss: float
    score: float
    logits: Tensor


@dataclass(frozen=True)
class EvalResult:
    """The evaluated model of an epoch and its results."""

    model: nn.Module
    validation: SplitResult
    test: SplitResult


class Evaluator:
    """Evaluates the EMA model of a fold, on the test set as well if `use_test`.

    The generator draws the training graphs of `bn_statistics=sample`.
    """

    def __init__(
        self,
        dataset: GraphDataset,
        split: Split,
        options: TrainerOptions,
        task: Task,
        generator: torch.Generator,
        use_test: bool,
    ):
        self.task, self.options, self.use_test = task, options, use_test and len(split.test) > 0
        self.metric = task.metric(options.monitor)
        self.validation = GraphLoader(dataset, split.validation, options.batch_size)
        self.test = GraphLoader(dataset, split.test, options.batch_size)
        no_logits = torch.full((len(split.test), dataset.info.outputs), math.nan)
        self.missing = SplitResult(math.nan, math.nan, no_logits)
        self.train = bounded_batches(dataset, split.train)
        if options.bn_statistics == "sample":
            self.train = sample_batch(dataset, split.train, generator)
        splits = [split.train, split.validation, *([split.test] if self.use_test else [])]
        self.sizes = [len(graphs) for graphs in splits]
        together = bounded_batches(dataset, torch.cat([torch.as_tensor(graphs) for graphs in splits]))
        self.whole: Batch | None = None  # all splits in one batch, for a single pass
        if options.bn_statistics == "precise" and options.precision == "fp32" and len(together) == 1:
            (self.whole,) = together
        self.train_nodes = int(dataset.node_offsets.diff()[torch.as_tensor(split.train)].sum())

    def evaluate(self, ema: ModelEma, epoch: int) -> EvalResult:
        """Evaluate the model of an epoch, with its BatchNorm statistics updated."""
        result = self.evaluate_in_one_pass(ema) or self.evaluate_by_split(ema)
        check_finite(result.validation.logits, epoch)
        if self.use_test:
            check_finite(result.test.logits, epoch)
        return result

    def evaluate_by_split(self, ema: ModelEma) -> EvalResult:
        model = ema.update_bn(self.train, partial(compute_logits, options=self.options))
        validation = evaluate(model, self.validation, self.options, self.task)
        test = evaluate(model, self.test, self.options, self.task) if self.use_test else self.missing
        return EvalResult(model, validation, test)

    def evaluate_in_one_pass(self, ema: ModelEma) -> EvalResult | None:
        """None if the splits do not fit in one batch, or the model has no such pass."""
        if self.whole is None:
            return None
        model = ema.sync()
        logits = forward_with_precise_bn(model, self.whole, self.train_nodes, self.options.fast)
        if logits is None:
            return None
        _, validation, *test = zip(logits.split(self.sizes), self.whole.labels.split(self.sizes), strict=True)
        test_result = score_outputs(self.task, *test[0], self.metric) if test else self.missing
        return EvalResult(model, score_outputs(self.task, *validation, self.metric), test_result)


def compute_logits(model: nn.Module, batch: Batch, options: TrainerOptions) -> Tensor:
    """Outputs (B, outputs) in float32, computed in the precision of the options."""
    dtype = torch.float16 if options.precision == "fp16" else torch.bfloat16
    with torch.autocast(batch.labels.device.type, dtype=dtype, enabled=options.precision != "fp32"):
        return forward_batch(model, batch, options.fast).float()


@torch.no_grad()
def evaluate(
    model: nn.Module, loader: GraphLoader | ChainLoader, options: TrainerOptions, task: Task
) -> SplitResult:
    """Evaluate the model on all graphs of a loader."""
    model.eval()
    pairs = [(compute_logits(model, batch, options), batch.labels) for batch in loader]
    empty = torch.zeros(0)
    outputs, labels = map(torch.cat, zip(*(pairs or [(empty, empty)]), strict=True))
    return score_outputs(task, outputs, labels, task.metric(options.monitor))


def score_outputs(task: Task, outputs: Tensor, labels: Tensor, metric: Metric) -> SplitResult:
    """Loss and score of the outputs (B, outputs) of a model, given the labels."""
    if not len(labels):
        return SplitResult(math.nan, math.nan, outputs.cpu())
    logits = task.decode(outputs).cpu()
    return SplitResult(task.loss(outputs, labels).item(), metric(logits, labels.cpu()), logits)


@torch.no_grad()
def embed(model: nn.Module, loader: GraphLoader, options: TrainerOptions) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings, labels and outputs of all graphs of a loader, on the CPU."""
    model.eval()
    embeddings = [embed_batch(model, batch, options.fast) for batch in loader]
    outputs = [forward_batch(model, batch, options.fast) for batch in loader]
    labels = [batch.labels for batch in loader]
    return torch.cat(embeddings).cpu(), torch.cat(labels).cpu(), torch.cat(outputs).cpu()


def check_finite(logits: Tensor, epoch: int) -> None:
    """Raise if a logit is NaN or infinite: argmax would silently predict the first class."""
    if not logits.isfinite().all():
        raise diverged(f"the model's logits are not finite after epoch {epoch}")


def diverged(reason: str) -> TrainingError:
    return TrainingError(
        f"{reason}: lower optimizer.lr, set trainer.clip_grad_norm=1, or trainer.standardize=true for attributes of large values"
    )
