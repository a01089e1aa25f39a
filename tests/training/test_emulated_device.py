"""Training, evaluation, prediction and explanation on an emulated device: no mixed devices, no waiting inside of a step, and
the numbers of the CPU."""

from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np
import pytest
import torch
from emulated_device import DEVICE, DeviceTensor, emulated_device, waits
from hydra.utils import instantiate
from test_zoo import SIZES, composed, networks

from egin_dgl.data import bonds
from egin_dgl.data.edge_list import EdgeList
from egin_dgl.data.loader import GraphLoader
from egin_dgl.data.splits import Split
from egin_dgl.inference.explanation import integrated_gradients
from egin_dgl.inference.subgraphs import one_graph
from egin_dgl.inference.trained_fold import TrainedFold
from egin_dgl.tasks import Multiclass
from egin_dgl.training.evaluator import Evaluator
from egin_dgl.training.job import Recipe
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.train_epoch import TrainState, train_one_epoch
from egin_dgl.training.trainer import seed_torch

DATA = bonds(graphs=40).with_training_statistics(range(24))
SPLIT = Split(np.arange(24), np.arange(24, 32), np.arange(32, 40))
ACCELERATED = ("gin", "egin", "egin_c", "egin_e")  # for these, the definition is another path
EPOCH_READS = 4  # the losses, outputs, labels and gradient norms of an epoch are read at its end


@contextmanager
def no_waiting():
    """The host waits at the end of the epoch only, however many steps it has."""
    waits.clear()
    yield
    assert len(waits) == EPOCH_READS, waits


def train_and_use(option, device, options, watch):
    """Everything that touches the device, as numbers: an epoch, its evaluation, predictions and an explanation."""
    dataset = DATA.to(device)
    generator, cfg = seed_torch(torch.device(device), 0), composed(option).copy()
    model = instantiate(cfg, **{key: value for key, value in SIZES.items() if key in cfg})(dataset.info)
    scheduler = partial(torch.optim.lr_scheduler.StepLR, step_size=1)
    recipe = Recipe(model, partial(torch.optim.Adam, lr=0.01), scheduler, options, {})
    state = TrainState.create(model.to(device), recipe)
    loader = GraphLoader(dataset, SPLIT.train, options.batch_size)
    task = Multiclass.fit(dataset.labels[: len(SPLIT.train)], dataset.info, balanced=True)
    evaluator = Evaluator(dataset, SPLIT, options, task, state.ema, generator, use_test=True)
    first, *others = loader.shuffled(seed_torch(torch.device(device), 1))
    train_one_epoch(state, [first], 1, 1, options, task)  # the first step makes the constants of the dataset
    with watch():
        trained = train_one_epoch(state, others, 2, len(others), options, task)
    result = evaluator.evaluate(1)
    fold = TrainedFold(
        0, DATA.info, DATA.vocabulary, None, (), Multiclass(), result.model, options, torch.device(device)
    )
    numbers = [torch.tensor([trained.loss, trained.grad_norm]), result.validation.logits, result.test.logits]
    numbers += [fold.logits(DATA), fold.embeddings(DATA)]
    numbers += integrated_gradients(fold, result.model, one_graph(DATA, 0), 1)[:2]
    return numbers, fold


@pytest.mark.parametrize(
    ("option", "fast"),
    [(option, True) for option in networks()] + [(option, False) for option in ACCELERATED],
)
def test_a_model_has_the_numbers_of_the_cpu(numbers, option, fast, monkeypatch):
    monkeypatch.setattr("egin_dgl.data.loader.why_not_dgl", lambda device: "edge lists on both devices")
    monkeypatch.setattr("egin_dgl.inference.explanation.STEPS", (4,))
    options = TrainerOptions(
        batch_size=4, ema_decay=0.9, clip_grad_norm=1.0, fast=fast, class_weights="balanced"
    )
    expected, _ = train_and_use(option, "cpu", options, nullcontext)
    with emulated_device(monkeypatch):
        found, fold = train_and_use(option, DEVICE, options, no_waiting)
    assert all(isinstance(p, DeviceTensor) for p in fold.model.parameters())
    for ours, theirs in zip(found, expected, strict=True):
        assert type(ours) is torch.Tensor
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


def test_what_the_emulated_device_refuses_and_records(monkeypatch):
    with emulated_device(monkeypatch):
        x = torch.arange(6.0).to(DEVICE)
        with pytest.raises(RuntimeError, match="expected all tensors to be on the same device"):
            x + torch.ones(6)
        waits.clear()
        assert (x * 2 + torch.tensor(1.0)).device == DEVICE and not waits
        for wait in (float, bool):
            wait(x.sum())
        x.nonzero(), x[x > 1], x.cpu(), x.tolist()
        assert len(waits) == 6


def test_a_batch_on_a_device_that_dgl_cannot_use_has_an_edge_list(monkeypatch):
    with emulated_device(monkeypatch):
        (batch,) = GraphLoader(DATA.to(DEVICE), range(3), 3)
        assert isinstance(batch.graph, EdgeList) and batch.graph.device == DEVICE
