"""Train one fold: epochs in, a history out."""

import math
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.loader import GraphLoader
from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.calibration import fold_temperature
from egin_dgl.evaluation.history import EpochRecord, History, best_on_validation, with_choice
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.models.model import GraphModel
from egin_dgl.models.wl_kernel import WLKernelSVM
from egin_dgl.runs.fold_dir import FoldDir, Progress
from egin_dgl.training.class_weights import balanced_class_weights
from egin_dgl.training.ema import ModelEma
from egin_dgl.training.evaluator import Evaluator
from egin_dgl.training.flat_parameters import FlatParameters, make_optimizer, without_compiler
from egin_dgl.training.job import FoldJob, MakeModel, OnEpoch
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.parallel.signals import defer_until_epoch_end, raise_if_stop_requested, stop_requested
from egin_dgl.training.passes import (
    Evaluation,
    GradScaler,
    TrainingState,
    diverged,
    embed,
    evaluate,
)
from egin_dgl.training.seeding import seed_torch
from egin_dgl.training.tensorboard import FoldLogger


class Stateful(Protocol):
    """What a fold must have back to go on: weights, moments, rates."""

    def state_dict(self) -> dict: ...

    def load_state_dict(self, state_dict: dict, /) -> object: ...


def train_fold(dataset: GraphDataset, job: FoldJob, on_epoch: OnEpoch) -> FoldResult:
    """Train, evaluate after every epoch, keep the best and the last state; go on where an earlier run stopped.

    Every epoch seeds itself, so that a resumed fold ends with the same numbers as an unbroken one.
    """
    recipe, options, split, folder = job.recipe, job.recipe.options, job.split, job.folder
    progress = folder.progress()
    if isinstance(progress, FoldResult):
        folder.mend(progress)
        return progress

    dataset, make_model, metadata = prepared(dataset, job)
    train = GraphLoader(dataset, split.train, options.batch_size)
    generator = seed_torch(job.seed, job.fold, 0)
    model = network(make_model(dataset.info)).to(job.device)
    weights = FlatParameters(model)
    optimizer = make_optimizer(recipe.make_optimizer, model, weights)
    scheduler = recipe.make_scheduler(optimizer)
    # fp16 gradients underflow without loss scaling; a disabled scaler passes everything straight through.
    scaler = GradScaler(enabled=options.precision == "fp16")
    evaluated = ModelEma(model, weights, options.ema_decay, options.bn_statistics != "running")
    states: dict[str, Stateful] = {
        "model": model,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "scaler": scaler,
        "evaluated": evaluated,
    }
    history: History = []
    test_logits: list[Tensor] = []
    if progress:
        restore(states, progress, folder)
        history, test_logits = progress.history, progress.test_logits

    class_weights = None
    if options.class_weights:
        class_weights = balanced_class_weights(
            dataset.labels[torch.as_tensor(split.train)], dataset.info.classes
        )
    training = TrainingState(model, weights, evaluated, optimizer, scaler, options, class_weights)
    looking = Evaluator(dataset, split, options, generator, read_test=not job.test_once)
    learnt = epsilons(evaluated.copy)
    unread = Evaluation.of_nothing(len(split.test), dataset.info.classes)
    validation_labels = dataset.labels[torch.as_tensor(split.validation)].cpu()

    best: tuple[dict[str, Tensor], dict] | None = None  # weights not yet written, and what is said of them
    with closing(FoldLogger(folder.path, first_epoch=len(history) + 1)) as tracker, defer_until_epoch_end():
        while not ended(history, options):
            epoch = len(history) + 1
            start = time.perf_counter()
            lr = optimizer.param_groups[0]["lr"]
            batches = train.shuffled(seed_torch(job.seed, job.fold, epoch))
            train_loss, train_accuracy, grad_norm = training.epoch(batches, epoch, len(train))
            looked = looking.look(evaluated)
            check_finite(looked.read, epoch)
            on_validation, on_test = looked.validation, looked.test or unread
            validation_loss = on_validation.loss if on_validation else math.nan
            if isinstance(scheduler, ReduceLROnPlateau):
                scheduler.step(train_loss if on_validation is None else validation_loss)
            else:
                scheduler.step()
            record = EpochRecord(
                epoch=epoch,
                train_loss=train_loss,
                train_accuracy=train_accuracy,
                val_loss=validation_loss,
                val_accuracy=on_validation.accuracy if on_validation else math.nan,
                val_score=METRICS[options.monitor](on_validation.logits, validation_labels)
                if on_validation
                else math.nan,
                test_loss=on_test.loss,
                test_accuracy=on_test.accuracy,
                lr=lr,
                grad_norm=grad_norm,
                seconds=time.perf_counter() - start,
            )
            record = with_choice(history, record, options.window)
            history.append(record)
            test_logits.append(on_test.logits)
            tracker.epoch(record, {layer: eps.item() for layer, eps in learnt.items()})
            on_epoch(job.fold, record)

            # Without validation there is nothing honest to choose by: the best weights are the last.
            last = ended(history, options)
            if best_on_validation(history) is record if on_validation else last:
                kept = {name: tensor.clone() for name, tensor in looked.model.state_dict().items()}
                best = kept, metadata | {"epoch": epoch}
            if last or stop_requested() or epoch % options.checkpoint_every == 0:
                if (
                    best
                ):  # not before: a fold that goes on from a checkpoint finds the best weights until then
                    folder.save_tensors(*best)
                    best = None
                with without_compiler():
                    content = {name: holder.state_dict() for name, holder in states.items()}
                folder.save_progress(Progress(history, test_logits, content))
                raise_if_stop_requested()
        about = folder.load_weights(model)
        validation, test = looking.validation, looking.test
        if not len(validation) and not len(test):  # nobody has looked at what was trained
            check_finite([evaluate(model, looking.measured, options)], len(history))
        chosen_logits = evaluate(model, validation, options).logits if len(validation) else None
        if len(test):
            tracker.embeddings(*embed(model, test), split.test)
            if job.test_once:
                on_test, chosen = evaluate(model, test, options), best_on_validation(history).epoch - 1
                history[chosen] = replace(
                    history[chosen], test_loss=on_test.loss, test_accuracy=on_test.accuracy
                )
                test_logits[chosen] = on_test.logits
    # Only now is there nothing left to do: a fold killed before this line goes on from its last epoch.
    test_labels = dataset.labels[torch.as_tensor(split.test)].cpu()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    result = FoldResult(
        fold=job.fold,
        history=history,
        test_logits=torch.stack(test_logits),
        test_labels=test_labels,
        parameters=parameters,
        chosen=job.chosen,
        validation_logits=chosen_logits,
        validation_labels=validation_labels,
    )
    folder.save_weights(model, about | {"temperature": fold_temperature(result)})
    folder.save_result(result)
    return result


def check_finite(evaluations: Sequence[Evaluation], epoch: int) -> None:
    """Scores that are no numbers would be read as answers for the first class."""
    if not all(evaluation.logits.isfinite().all() for evaluation in evaluations):
        raise diverged(f"the scores of the model are not finite after epoch {epoch}")


def restore(states: dict[str, Stateful], progress: Progress, folder: FoldDir) -> None:
    try:
        with without_compiler():
            for name, holder in states.items():
                holder.load_state_dict(progress.states[name])
    except (KeyError, ValueError, RuntimeError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {str(error).strip().splitlines()[-1].strip()}"
        raise TrainingError(
            f"{folder.checkpoint}: not a checkpoint of this model and version ({reason}); {folder.remedy}"
        ) from error


def prepared(dataset: GraphDataset, job: FoldJob) -> tuple[GraphDataset, MakeModel, dict]:
    """What the training part teaches about the data: sizes, transforms; how a model is made for it, and what of all this
    is saved with the weights."""
    train = job.split.train
    dataset = dataset.with_training_statistics(train)  # a model may size itself by its training graphs
    info, transforms = asdict(dataset.info), dict[str, dict]()
    make_model = job.recipe.make_model
    for fit in job.recipe.transforms:
        transform = fit(dataset, train)
        dataset, make_model = transform.apply(dataset), transform.wrap(make_model)
        transforms[type(transform).__name__] = transform.to_dict()
    metadata = dict(job.recipe.metadata, fold=job.fold, info=info, transforms=transforms)
    metadata["precision"] = job.recipe.options.precision
    return dataset.to(job.device), make_model, metadata


def network(model: GraphModel | WLKernelSVM) -> GraphModel:
    if isinstance(model, nn.Module):
        return model
    raise TypeError(f"{type(model).__name__} is no network: nothing of it can be trained by steps")


def ended(history: History, options: TrainerOptions) -> bool:
    """All epochs are done, or validation has not improved for as many as `patience` allows."""
    if len(history) >= options.epochs:
        return True
    if options.patience is None or len(history) < options.window:
        return False
    return len(history) - best_on_validation(history).epoch >= options.patience


def epsilons(model: nn.Module) -> dict[str, nn.Parameter]:
    """The learnt ε of each layer, by the layer's name."""
    return {name.removesuffix(".eps"): p for name, p in model.named_parameters() if name.endswith(".eps")}
