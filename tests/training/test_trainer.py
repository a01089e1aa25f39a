"""fit_fold: determinism, resuming, selection, early stopping, divergence."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from egin_dgl.data import Standardizer
from egin_dgl.data.loader import GraphLoader
from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.history import best_validation_record
from egin_dgl.evaluation.multiclass import accuracy, auroc, log_loss
from egin_dgl.models import Majority
from egin_dgl.runs.fold_dir import read_history
from egin_dgl.tasks import Multiclass
from egin_dgl.training.evaluator import evaluate
from egin_dgl.training.tensorboard import FoldLogger
from egin_dgl.training.trainer import fit_fold, seed_torch


def numbers(history):
    return [replace(record, seconds=0.0) for record in history]


def ignore(fold, record):
    pass


def with_recipe(job, **changes):
    return replace(job, recipe=replace(job.recipe, **changes))


class Interrupted(Exception):
    pass


def interrupt_at(epoch):
    def report(fold, record):
        if record.epoch == epoch:
            raise Interrupted

    return report


def test_training_is_deterministic(data, make_job):
    one = fit_fold(data, make_job(folder="one"), ignore)
    two = fit_fold(data, make_job(folder="two"), ignore)
    assert repr(numbers(one.history)) == repr(numbers(two.history))
    assert torch.equal(one.test_logits, two.test_logits)
    job = make_job(folder="three")
    other = fit_fold(data, replace(job, seed=job.seed + 1), ignore)
    assert numbers(one.history) != numbers(other.history)


RECIPES = [
    {},
    {"ema_decay": 0.9, "monitor_window": 3, "warmup_epochs": 3},
    {"ema_decay": 0.9, "bn_statistics": "running"},
    {"bn_statistics": "sample", "precision": "bf16", "ema_decay": 0.5},
]


@pytest.mark.parametrize(("recipe", "epoch"), zip(RECIPES, [1, 3, 4, 6], strict=True), ids=str)
def test_resumed_fold_equals_uninterrupted_fold(data, make_job, recipe, epoch):
    whole = fit_fold(data, make_job(folder="whole", **recipe), ignore)
    with pytest.raises(Interrupted):
        fit_fold(data, make_job(folder="broken", **recipe), interrupt_at(epoch))
    resumed = fit_fold(data, make_job(folder="broken", **recipe), ignore)
    assert repr(numbers(resumed.history)) == repr(numbers(whole.history))
    assert torch.equal(resumed.test_logits, whole.test_logits)


def test_fold_killed_after_last_epoch_only_finishes(data, make_job, monkeypatch):
    """All epochs are saved, the embeddings are not."""
    whole = fit_fold(data, make_job(folder="whole"), ignore)
    with monkeypatch.context() as patch:
        patch.setattr(FoldLogger, "log_embeddings", lambda *_: (_ for _ in ()).throw(Interrupted))
        with pytest.raises(Interrupted):
            fit_fold(data, make_job(folder="broken"), ignore)
    seen = []
    resumed = fit_fold(data, make_job(folder="broken"), lambda *event: seen.append(event))
    assert seen == []
    assert repr(numbers(resumed.history)) == repr(numbers(whole.history))


def test_finished_fold_is_not_trained_again(data, make_job):
    first = fit_fold(data, make_job(), ignore)
    seen = []
    again = fit_fold(data, make_job(), lambda *event: seen.append(event))
    assert seen == []
    assert again.history == first.history


@pytest.mark.parametrize("recipe", RECIPES[1:3], ids=str)
def test_saved_weights_reproduce_the_history(data, make_job, recipe):
    job = make_job(**recipe)
    result = fit_fold(data, job, ignore)
    assert repr(read_history(job.folder.history)) == repr(result.history)
    model = job.recipe.make_model(data.info)
    metadata = job.folder.load_weights(model)
    best = max(result.history, key=lambda record: record.validation_rank)
    assert metadata["epoch"] == best.epoch
    test = evaluate(model, GraphLoader(data, job.split.test, 8), job.recipe.options, Multiclass())
    # By split or in one pass: equal but for the order of sums.
    torch.testing.assert_close(test.logits, result.test_logits[best.epoch - 1], rtol=1e-3, atol=1e-3)
    assert test.score == best.test_score


def test_result_has_validation_logits_of_the_selected_epoch(data, make_job):
    job = make_job()
    result = fit_fold(data, job, ignore)
    best = best_validation_record(result.history)
    assert log_loss(result.validation_logits, result.validation_labels) == pytest.approx(
        best.val_loss, rel=1e-5
    )
    assert accuracy(result.validation_logits, result.validation_labels) == best.val_score
    again = fit_fold(data, job, ignore)
    assert torch.equal(again.validation_logits, result.validation_logits)
    assert fit_fold(data, make_job(folder="all", validation=False), ignore).validation_logits is None


def test_epoch_is_selected_by_the_monitored_metric(data, make_job):
    job = make_job(monitor="auroc")
    result = fit_fold(data, job, ignore)
    best = max(result.history, key=lambda record: (record.val_score, -record.val_loss))
    model = job.recipe.make_model(data.info)
    assert job.folder.load_weights(model)["epoch"] == best.epoch
    labels = data.labels[torch.as_tensor(job.split.validation)]
    logits = evaluate(
        model, GraphLoader(data, job.split.validation, 8), job.recipe.options, Multiclass()
    ).logits
    assert best.val_score == pytest.approx(auroc(logits, labels))


def test_class_weights_matter_only_for_imbalanced_classes(data, make_job):
    """Weights of equal classes are 1; a constant model with balanced weights predicts each class equally."""
    even = torch.as_tensor(make_job().split.train)
    assert data.labels[even].float().mean() == 0.5
    losses = [
        fit_fold(data, make_job(folder=str(weights), class_weights=weights), ignore).history[-1].train_loss
        for weights in (None, "balanced")
    ]
    assert losses[0] == pytest.approx(losses[1])
    skewed = replace(data, labels=torch.tensor([int(i % 10 == 0) for i in range(len(data))]))
    constant = partial(torch.optim.lr_scheduler.StepLR, step_size=1000)

    def rare(weights):
        options = {"lr": 0.1, "epochs": 100, "batch_size": 100, "scheduler": constant}
        job = make_job(folder=f"rare_{weights}", class_weights=weights, **options)
        result = fit_fold(skewed, with_recipe(job, make_model=Majority), ignore)
        return result.test_logits[-1].softmax(dim=1)[:, 1].mean().item()

    assert rare(None) == pytest.approx(skewed.labels[even].float().mean().item(), abs=0.05)
    assert rare("balanced") == pytest.approx(0.5, abs=0.05)


def test_last_weights_are_saved_without_validation_set(data, make_job):
    job = make_job(validation=False)
    result = fit_fold(data, job, ignore)
    assert job.folder.load_weights(job.recipe.make_model(data.info))["epoch"] == 6
    assert all(record.val_loss != record.val_loss for record in result.history)


def test_early_stopping_after_patience(data, make_job):
    result = fit_fold(data, make_job(epochs=60, patience=4, lr=0.02), ignore)
    best = max(result.history, key=lambda record: record.validation_rank)
    assert len(result.history) == min(60, best.epoch + 4)
    constant = fit_fold(data, make_job(folder="constant", epochs=60, patience=4, lr=0.0), ignore)
    assert len(constant.history) == 1 + 4  # no epoch is better than the first


def test_patience_starts_after_a_full_window(data, make_job):
    """With constant weights, epoch 8 is the first with a full window, and none is better."""
    result = fit_fold(data, make_job(epochs=40, patience=2, monitor_window=8, lr=0.0), ignore)
    assert best_validation_record(result.history).epoch == 8
    assert len(result.history) == 8 + 2


def test_warmup_ramps_the_learning_rate_over_steps(data, make_job):
    """SGD on clipped gradients moves by the sum of its learning rates."""

    def distance(**options):
        job = make_job(epochs=1, batch_size=1, clip_grad_norm=1e-4, folder=str(options), **options)
        job = with_recipe(job, make_optimizer=partial(torch.optim.SGD, lr=1.0))
        before = torch.cat([w.flatten() for w in first_weights(data, job)])
        result = fit_fold(data, job, ignore)
        after = job.recipe.make_model(data.info)
        job.folder.load_weights(after)
        assert result.history[0].lr == 1.0  # the scheduler's rate is restored
        return (torch.cat([w.flatten() for w in after.parameters()]) - before).norm()

    assert distance(warmup_epochs=10) < 0.2 * distance()


def test_ema_reduces_fluctuation_of_the_validation_loss(data, make_job):
    """Measured by second differences, which contain no trend."""
    constant = partial(torch.optim.lr_scheduler.StepLR, step_size=1000)

    def fluctuation(fold, **options):
        job = make_job(fold, epochs=30, lr=0.05, folder=str(options), scheduler=constant, **options)
        losses = torch.tensor([record.val_loss for record in fit_fold(data, job, ignore).history])
        return losses[10:].diff().diff().abs().mean()

    folds = range(2)
    assert sum(fluctuation(fold, ema_decay=0.95) for fold in folds) < 0.7 * sum(map(fluctuation, folds))


def test_nonfinite_loss_raises_with_epoch_and_step(data, make_job):
    broken = data.with_features(node_feats=data.node_feats.clone())
    broken.node_feats[int(data.node_offsets[int(make_job().split.train[0])])] = float("nan")
    with pytest.raises(TrainingError, match=r"^the loss is nan at epoch 1, step [123]: lower"):
        fit_fold(broken, make_job(), ignore)


@pytest.mark.parametrize("held_out", ["validation", "test", "nothing"])
def test_nonfinite_logits_raise(data, make_job, held_out):
    """One step with a finite loss makes weights so large that the next forward pass overflows."""
    job = make_job(epochs=1, batch_size=100, validation=held_out == "validation")
    job = with_recipe(job, make_optimizer=partial(torch.optim.SGD, lr=1e30))
    if held_out == "nothing":
        job = replace(job, split=replace(job.split, test=job.split.test[:0]))
    with pytest.raises(TrainingError, match=r"^the model's logits are not finite after epoch 1: lower"):
        fit_fold(data, job, ignore)


def test_gradients_are_clipped(data, make_job):
    """SGD moves by lr × gradient, so a clipped step is at most lr × the bound."""

    def distance(**options):
        job = make_job(epochs=1, batch_size=100, folder=str(options), **options)
        job = with_recipe(job, make_optimizer=partial(torch.optim.SGD, lr=1.0))
        torch.manual_seed(0)
        before = first_weights(data, job)
        fit_fold(data, job, ignore)
        after = job.recipe.make_model(data.info)
        job.folder.load_weights(after)
        return (
            sum((a - b).pow(2).sum().item() for a, b in zip(after.parameters(), before, strict=True)) ** 0.5
        )

    assert distance() > 0.1
    assert distance(clip_grad_norm=0.01) <= 0.0101


def first_weights(data, job):
    seed_torch(job.device, job.seed, job.fold, 0)
    return [parameter.detach().clone() for parameter in job.recipe.make_model(data.info).parameters()]


def test_bf16_trains_on_the_cpu(data, make_job):
    full = fit_fold(data, make_job(folder="full"), ignore)
    mixed = fit_fold(data, make_job(folder="mixed", precision="bf16"), ignore)
    assert mixed.test_logits.dtype == torch.float32
    assert not torch.equal(full.test_logits, mixed.test_logits)
    assert mixed.history[-1].train_loss == pytest.approx(full.history[-1].train_loss, rel=0.5, abs=0.5)


def test_learning_rate_follows_the_scheduler(data, make_job):
    result = fit_fold(data, make_job(), ignore)
    assert [record.lr for record in result.history] == [0.01] * 3 + [0.005] * 3
    plateau = partial(ReduceLROnPlateau, factor=0.5, patience=0, threshold=10.0)
    result = fit_fold(data, make_job(folder="plateau", scheduler=plateau), ignore)
    assert result.history[-1].lr < 0.01


def test_standardization_is_saved_with_the_weights(data, make_job):
    job = make_job(transforms=(Standardizer.fit,))
    fit_fold(data, job, ignore)
    metadata = job.folder.load_weights(job.recipe.make_model(data.info))
    assert set(metadata["transforms"]["Standardizer"]) == {"node_mean", "node_std", "edge_mean", "edge_std"}


def test_damaged_checkpoints_are_reported(data, make_job):
    job = make_job()
    fit_fold(data, job, ignore)
    for name in ("best.safetensors", "last.pt"):
        path = job.folder.path / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(TrainingError, match="last.pt: not a readable checkpoint"):
        fit_fold(data, job, ignore)
    with pytest.raises(TrainingError, match="best.safetensors: not a readable checkpoint"):
        job.folder.load_weights(job.recipe.make_model(data.info))


def test_model_receives_sizes_of_training_graphs_only(data, make_job):
    job = make_job(epochs=1)
    seen = []
    fit_fold(
        data,
        with_recipe(job, make_model=lambda info: seen.append(info) or job.recipe.make_model(info)),
        ignore,
    )
    assert seen == [data.with_training_statistics(job.split.train).info]
    saved = job.folder.load_weights(job.recipe.make_model(data.info))["info"]
    assert tuple(saved["size_percentiles"]) == seen[0].size_percentiles
