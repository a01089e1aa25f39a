"""Evaluation of a model on the validation and test sets after every epoch.

Precise BN needs a pass over the training set as well. Each set is computed by itself, so that the numbers of one depend on
no graph of another: statistics on the training set only, and the choice of an epoch not on the test set. Of several ranks each
computes its share of every set, and all of them get the results.
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
from egin_dgl.models.dispatch import embed_batch, forward_batch, make_precise_forward
from egin_dgl.tasks import Task
from egin_dgl.training.ema import ModelEma
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.parallel.ranks import ONE_RANK, Ranks
from egin_dgl.training.precise_bn import MAX_PASS_ROWS, MAX_ROWS, bounded_batches, sample_graphs


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

    The generator draws the training graphs that statistics are computed on, where they are a sample.
    """

    def __init__(
        self,
        dataset: GraphDataset,
        split: Split,
        options: TrainerOptions,
        task: Task,
        ema: ModelEma,
        generator: torch.Generator,
        use_test: bool,
        ranks: Ranks = ONE_RANK,
    ):
        self.task, self.options, self.ema = task, options, ema
        self.use_test = use_test and len(split.test) > 0
        self.metric = task.metric(options.monitor)
        self.validation = GraphLoader(dataset, split.validation, options.batch_size)
        self.test = GraphLoader(dataset, split.test, options.batch_size)
        no_logits = torch.full((len(split.test), dataset.info.outputs), math.nan)
        self.missing = SplitResult(math.nan, math.nan, no_logits)
        max_rows = MAX_ROWS if options.bn_statistics == "sample" else MAX_PASS_ROWS
        train = share_graphs(dataset, sample_graphs(dataset, split.train, max_rows, generator), ranks)
        self.train = bounded_batches(dataset, train)
        # The same graphs in batches as large as one pass takes: of the training set one.
        self.train_pass = bounded_batches(dataset, train, max_rows)
        tested = split.test if self.use_test else split.test[:0]
        self.ranks, evaluated = ranks, (split.validation, tested)
        precise = (
            options.bn_statistics != "running" and options.precision == "fp32" and len(self.train_pass) == 1
        )
        # Made once: inspecting a model takes time.
        self.precise_forward = make_precise_forward(ema.model, options.fast) if precise else None
        shares = [ranks.share(graphs) for graphs in evaluated]
        self.loaders = [GraphLoader(dataset, graphs, options.batch_size) for graphs in shares]
        self.passes = [bounded_batches(dataset, graphs, MAX_PASS_ROWS) for graphs in shares]
        self.labels = [dataset.labels[torch.as_tensor(graphs)] for graphs in evaluated]
        self.no_outputs = torch.zeros(0, dataset.info.outputs, device=dataset.labels.device)

    def evaluate(self, epoch: int) -> EvalResult:
        """Evaluate the model after an epoch, with its BatchNorm statistics updated."""
        result = self.evaluate_in_one_pass() or self.evaluate_by_split()
        check_finite(result.validation.logits, epoch)
        if self.use_test:
            check_finite(result.test.logits, epoch)
        return result

    @torch.no_grad()
    def evaluate_by_split(self) -> EvalResult:
        call = partial(compute_logits, options=self.options)
        model = self.ema.update_bn(self.train, call, self.ranks.share_moments)
        validation, test = ([call(model, batch) for batch in loader] for loader in self.loaders)
        return self.score(model, validation, test)

    def evaluate_in_one_pass(self) -> EvalResult | None:
        """None if the statistics are not those of one batch, or the model has no such pass."""
        if self.precise_forward is None:
            return None
        model, (train,) = self.ema.sync(), self.train_pass
        validation, test = map(list, self.passes)
        outputs = self.precise_forward(train, [*validation, *test], self.ranks.share_moments)
        if outputs is None:
            return None
        return self.score(model, outputs[: len(validation)], outputs[len(validation) :])

    def score(self, model: nn.Module, *outputs: list[Tensor]) -> EvalResult:
        """The result of the outputs for this rank's batches of the validation and of the test set."""
        validation, test = (
            score_outputs(
                self.task, self.ranks.gather(torch.cat([self.no_outputs, *found])), labels, self.metric
            )
            for found, labels in zip(outputs, self.labels, strict=True)
        )
        return EvalResult(model, validation, test if self.use_test else self.missing)


def share_graphs(dataset: GraphDataset, graphs: Tensor, ranks: Ranks) -> Tensor:
    """The graphs that a rank computes statistics on: its share, or all of them if the share of a rank has no node."""
    if ranks.size == 1:
        return graphs
    sizes = dataset.node_offsets.diff().cpu()[graphs]
    every_rank = all(int(share.sum()) for share in sizes.tensor_split(ranks.size))
    return torch.as_tensor(ranks.share(graphs)) if every_rank else graphs


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
    outputs, labels = map(torch.cat, zip(*(pairs or [(torch.zeros(0), torch.zeros(0))]), strict=True))
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
        f"{reason}: lower optimizer.lr, set trainer.clip_grad_norm=1, or trainer.standardize=auto for attributes of large values"
    )
