"""What is looked at after every epoch: the validation and the test part, by the model of that epoch.

Where the statistics of batch normalisation are measured exactly, the training part passes through the model as well. If
all three parts fit one batch, and the model is made of blocks that can be measured as they are reached, it is one pass.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.loader import Batch, GraphLoader
from egin_dgl.data.splits import Split
from egin_dgl.models.dispatch import forward_with_precise_bn
from egin_dgl.training.ema import ModelEma
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.passes import Evaluation, compute_logits, evaluate, judged, precise_bn_batches


@dataclass(frozen=True)
class EvalResult:
    """The model of an epoch, and what it says of the parts that were read."""

    model: nn.Module
    validation: Evaluation | None
    test: Evaluation | None

    @property
    def read(self) -> list[Evaluation]:
        return [part for part in (self.validation, self.test) if part]


class Evaluator:
    """The parts of a fold as they are passed over after each epoch.

    Args:
        dataset: with the graphs of all parts, on the device that computes.
        split: which graphs are in which part.
        options: which statistics, and in which precision.
        generator: draws the rows that are measured, where a sample is.
        read_test: whether the test part may be read.
    """

    def __init__(
        self,
        dataset: GraphDataset,
        split: Split,
        options: TrainerOptions,
        generator: torch.Generator,
        read_test: bool,
    ):
        self.options = options
        self.validation, self.test = (
            GraphLoader(dataset, part, options.batch_size) for part in (split.validation, split.test)
        )
        self.read_test = read_test and len(split.test) > 0
        self.measured = precise_bn_batches(dataset, split.train, options.bn_statistics == "sample", generator)
        self.whole: Batch | None = None
        parts = [split.train, split.validation, *([split.test] if self.read_test else [])]
        self.sizes = [len(part) for part in parts]
        together = precise_bn_batches(dataset, torch.cat([torch.as_tensor(part) for part in parts]))
        if options.bn_statistics == "precise" and len(together) == 1:
            (self.whole,) = together
            self.rows = int(dataset.node_offsets.diff()[torch.as_tensor(split.train)].sum())

    def look(self, evaluated: ModelEma) -> EvalResult:
        at_once = self.in_one_pass(evaluated) if self.whole and evaluated.measured else None
        if at_once:
            return at_once
        model = evaluated.current(self.measured, partial(compute_logits, options=self.options))
        validation = evaluate(model, self.validation, self.options) if len(self.validation) else None
        return EvalResult(
            model, validation, evaluate(model, self.test, self.options) if self.read_test else None
        )

    def in_one_pass(self, evaluated: ModelEma) -> EvalResult | None:
        model = evaluated.followed()
        if self.whole is None or self.options.precision != "fp32":
            return None
        scores = forward_with_precise_bn(model, self.whole, self.rows, self.options.fast)
        if scores is None:
            return None
        _, validation, *test = zip(scores.split(self.sizes), self.whole.labels.split(self.sizes), strict=True)
        return EvalResult(model, judge(*validation), judge(*test[0]) if test else None)


def judge(scores: Tensor, labels: Tensor) -> Evaluation | None:
    """None of a part that is empty."""
    return judged(scores, labels) if len(labels) else None
