"""Several ranks train one model: the gradient and statistics of the whole batch and set, the same digits, no rank lost silently."""

import math
import multiprocessing
import os
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from egin_dgl.data.loader import GraphLoader
from egin_dgl.data.splits import Split
from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.history import FoldResult
from egin_dgl.models import EGINE
from egin_dgl.tasks import Multiclass, Multilabel, Regression
from egin_dgl.training.ema import ModelEma
from egin_dgl.training.evaluator import Evaluator
from egin_dgl.training.flat_parameters import FlatParameters
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.parallel.processes import fold_worker_context
from egin_dgl.training.parallel.rank_processes import process_group
from egin_dgl.training.parallel.ranks import ONE_RANK, Ranks
from egin_dgl.training.parallel.resources import CpuBudget
from egin_dgl.training.parallel.shared_sum import SharedSum
from egin_dgl.training.parallel.workers import train_folds
from egin_dgl.training.train_epoch import TrainState, compute_gradients

SPLIT = Split(np.arange(20), np.arange(20, 31), np.arange(31, 40))


def on_ranks(function, size, directory, with_shared_memory=False):
    """Call function(ranks) in so many real processes; return what each of them returned."""
    context = fold_worker_context()
    shared = SharedSum(directory / "gradients", size, context) if with_shared_memory else None
    processes = [
        context.Process(target=call, args=(function, Ranks(rank, size, shared), directory))
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    return [torch.load(directory / f"{rank}.pt", weights_only=False) for rank in range(size)]


def call(function, ranks, directory):
    torch.set_num_threads(1)
    with process_group(ranks, directory / "store"):
        torch.save(function(ranks), directory / f"{ranks.rank}.pt")


def targets_of(task, graphs):
    """Labels of every kind: rare classes with weights, unknown labels, graphs with weights."""
    random = torch.Generator().manual_seed(0)
    if task == "multiclass":
        return Multiclass(torch.tensor([0.2, 3.0])), torch.arange(graphs) % 3 // 2, None
    values = torch.randn(graphs, 2, generator=random, dtype=torch.float64)
    values[torch.rand(graphs, 2, generator=random) < 0.4] = math.nan
    values[1] = math.nan
    if task == "multilabel":
        labels = torch.where(values.isnan(), values, (values > 0).double())
        return Multilabel(torch.tensor([[0.5, 1.0], [2.0, 1.0]])), labels, None
    moments = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    return Regression(*moments), values, torch.rand(graphs, generator=random)


def step_of(ranks, data, task, fast, batch_size):
    """Loss and gradient of the last, uneven batch of an epoch, without batch statistics."""
    fitted, labels, weights = targets_of(task, len(data))
    info = replace(data.info, task=task, target_names=("a", "b") if task != "multiclass" else ())
    data = replace(data, info=info, labels=labels, weights=weights)
    torch.manual_seed(0)
    model = EGINE(data.info, hidden_dim=8, num_layers=2, norm="layer", dropout=0.0)
    state = TrainState.create(model, recipe_of())
    *_, batch = GraphLoader(data, range(20), batch_size).shuffled(
        torch.Generator().manual_seed(1), ranks.rank, ranks.size
    )
    loss, _ = compute_gradients(state, batch, TrainerOptions(fast=fast), fitted)
    if ranks.size > 1:
        weight = fitted.loss_weight(batch.labels, batch.weights)
        loss = ranks.average_gradients(state.parameters.grads, loss, weight)
    return loss, state.parameters.grads[0].clone()


def recipe_of():
    from egin_dgl.training.job import Recipe

    return Recipe(
        None, torch.optim.SGD, partial(torch.optim.lr_scheduler.StepLR, step_size=1), TrainerOptions(), {}
    )


CASES = [(task, fast) for task in ("multiclass", "multilabel", "regression") for fast in (True, False)]


def steps_of(ranks, data):
    # Last batches of 6 and of 1 graph: uneven, and with ranks that have no graph.
    return [step_of(ranks, data, task, fast, size) for task, fast in CASES for size in (7, 19)]


@pytest.mark.parametrize("with_shared_memory", [True, False])
@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_gradient_is_that_of_the_whole_batch(numbers, data, tmp_path, size, with_shared_memory):
    expected = steps_of(ONE_RANK, data)
    for found in on_ranks(partial(steps_of, data=data), size, tmp_path, with_shared_memory):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def evaluate_shares(ranks, data):
    """Results and statistics of a model with batch normalisation on all sets, in one pass and by the definition."""
    found = []
    for fast in (True, False):
        torch.manual_seed(0)
        model = EGINE(data.info, hidden_dim=8, num_layers=2)
        options = TrainerOptions(fast=fast)
        ema = ModelEma(model, FlatParameters(model), None, True)
        result = Evaluator(data, SPLIT, options, Multiclass(), ema, torch.Generator(), True, ranks).evaluate(
            1
        )
        found.append((result.validation.logits, result.test.logits, dict(result.model.named_buffers())))
    return found


def test_evaluation_is_shared_and_its_result_is_not(data, tmp_path):
    expected = evaluate_shares(ONE_RANK, data)
    for found in on_ranks(partial(evaluate_shares, data=data), 2, tmp_path):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_ranks_share_every_batch(data):
    loader = GraphLoader(data, range(40), 9)
    whole = loader.shuffled(torch.Generator().manual_seed(0))
    shares = [loader.shuffled(torch.Generator().manual_seed(0), rank, 5) for rank in range(5)]
    for batch, *parts in zip(whole, *shares, strict=True):
        assert sorted(batch.graphs.tolist()) == sorted(g for part in parts for g in part.graphs.tolist())
        sizes = [len(part.labels) for part in parts]
        assert max(sizes) - min(sizes) <= 1


def history_of(result):
    return [replace(record, seconds=0) for record in result.history]


def train(data, job, ranks, on_epoch=lambda *event: None):
    (result,) = train_folds(data, [job], on_epoch, CpuBudget(1, ranks=ranks))
    return result


def test_same_digits_for_the_same_number_of_ranks_also_after_a_killed_rank(data, make_job):
    whole = train(data, make_job(folder="whole"), 2)

    def kill(fold, record):
        if record.epoch == 4:
            (follower,) = multiprocessing.active_children()
            os.kill(follower.pid, signal.SIGKILL)

    broken = make_job(folder="broken", checkpoint_every=3)
    with pytest.raises(
        TrainingError, match=r"rank 1 of 2 ended \(killed, or out of memory\?\); the last checkpoint"
    ):
        train(data, broken, 2, kill)
    assert len(broken.folder.progress().history) == 3
    again = train(data, broken, 2)
    assert repr(history_of(again)) == repr(history_of(whole))
    assert torch.equal(again.test_logits, whole.test_logits)


def test_ranks_train_what_one_process_trains(data, make_job):
    """Without batch statistics and dropout they differ by rounding; resumed by another number of ranks as well."""
    kind = partial(make_job, model=partial(EGINE, norm="layer"), batch_size=7)
    one, two = (without_dropout(kind(folder=f"ranks_{ranks}")) for ranks in (1, 2))
    expected = train(data, one, 1).history

    def stop(fold, record):
        if record.epoch == 4:
            raise TrainingError("stopped by the test")

    with pytest.raises(TrainingError, match="stopped"):
        train(data, two, 2, stop)
    found = train(data, two, 1)
    assert isinstance(found, FoldResult) and len(found.history) == len(expected)
    for ours, theirs in zip(found.history, expected, strict=True):
        assert ours.train_loss == pytest.approx(theirs.train_loss, rel=1e-3)
        assert ours.val_loss == pytest.approx(theirs.val_loss, rel=1e-3)


def without_dropout(job):
    make = partial(EGINE, hidden_dim=8, num_layers=2, norm="layer", dropout=0.0)
    return replace(job, recipe=replace(job.recipe, make_model=make))


def test_error_of_all_ranks_is_one_sentence(data, make_job):
    with pytest.raises(TrainingError, match=r"fold 0: the loss is (nan|inf) at epoch \d+"):
        train(data, make_job(lr=1e30), 2)


class FailsInSecondRank(EGINE):
    def __init__(self, *args, **options):
        if multiprocessing.parent_process() is not None:
            raise MemoryError("no memory for this rank")
        super().__init__(*args, **options)


def test_reason_of_another_rank_is_reported(data, make_job):
    with pytest.raises(TrainingError, match=r"rank 1 of 2 ended \(.*no memory for this rank\)"):
        train(data, make_job(model=FailsInSecondRank), 2)
