"""Train one fold: set up, epochs, finish."""

import time
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.loader import GraphLoader
from egin_dgl.evaluation.calibration import fold_temperature
from egin_dgl.evaluation.history import (
    EpochRecord,
    FoldResult,
    History,
    average_monitor,
    best_validation_record,
)
from egin_dgl.models.estimators.sklearn_model import SklearnModel
from egin_dgl.models.model import GraphModel
from egin_dgl.runs.fold_dir import Progress
from egin_dgl.tasks import TASKS, Task
from egin_dgl.training.evaluator import Evaluator, check_finite, embed, evaluate
from egin_dgl.training.job import FoldJob, MakeModel, OnEpoch
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.parallel.signals import defer_until_epoch_end, raise_interrupted, stop_requested
from egin_dgl.training.tensorboard import FoldLogger
from egin_dgl.training.train_epoch import TrainState, train_one_epoch


def fit_fold(dataset: GraphDataset, job: FoldJob, on_epoch: OnEpoch) -> FoldResult:
    """Train a network on one fold, evaluate it after every epoch, and save the best and the last state.

    Resumes from the fold's checkpoint if there is one. Every epoch has its own seed, so a resumed fold ends with the
    same numbers as an uninterrupted one.
    """
    recipe, options, split, folder, ranks = job.recipe, job.recipe.options, job.split, job.folder, job.ranks
    progress = ranks.broadcast(folder.progress() if ranks.is_first else None)
    if isinstance(progress, FoldResult):
        return folder.verify(progress) if ranks.is_first else progress

    # Set up.
    dataset, make_model, metadata = prepare_data(dataset, job)
    generator = seed_torch(job.device, job.seed, job.fold, 0)
    model = check_network(make_model(dataset.info)).to(job.device)
    ranks.broadcast_weights(model)
    state = TrainState.create(model, recipe)
    history, test_logits = state.resume(progress, folder) if progress else ([], [])
    loader = GraphLoader(dataset, split.train, options.batch_size)
    train_labels = dataset.labels[torch.as_tensor(split.train)]
    balanced = options.class_weights == "balanced"
    task = TASKS[dataset.info.task].fit(train_labels, dataset.info, options.loss, balanced)
    metric = task.metric(options.monitor)
    evaluator = Evaluator(dataset, split, options, task, state.ema, generator, not job.test_once, ranks)
    metadata |= {"task": task.to_dict()}
    epsilons = learned_epsilons(state.ema.model)
    best: tuple[dict[str, Tensor], dict] | None = None  # best weights and metadata, not yet on disk

    with logger_of(job, len(history) + 1) as logger, defer_until_epoch_end():
        # Epochs.
        while not is_finished(history, options):
            epoch, start, lr = len(history) + 1, time.perf_counter(), state.optimizer.param_groups[0]["lr"]
            generator = seed_torch(job.device, job.seed, job.fold, epoch, rank=ranks.rank)
            batches = loader.shuffled(generator, ranks.rank, ranks.size)
            train = train_one_epoch(state, batches, epoch, len(loader), options, task, ranks)
            ranks.average_bn_stats(model)
            evaluated = evaluator.evaluate(epoch)
            validation, test = evaluated.validation, evaluated.test
            if isinstance(state.scheduler, ReduceLROnPlateau):
                state.scheduler.step(validation.loss if len(split.validation) else train.loss)
            else:
                state.scheduler.step()
            record = EpochRecord(
                epoch=epoch,
                train_loss=train.loss,
                train_score=train.score,
                val_loss=validation.loss,
                val_score=validation.score,
                test_loss=test.loss,
                test_score=test.score,
                lr=lr,
                grad_norm=train.grad_norm,
                seconds=time.perf_counter() - start,
                metric=metric.name,
            )
            record = average_monitor(history, record, options.window)
            history.append(record)
            test_logits.append(test.logits)
            if logger:
                logger.log_epoch(record, {layer: eps.item() for layer, eps in epsilons.items()})
            on_epoch(job.fold, record)

            finished, stopping = is_finished(history, options), ranks.any(stop_requested())
            # Without a validation set the last weights are saved.
            if best_validation_record(history) is record if len(split.validation) else finished:
                weights = {name: tensor.clone() for name, tensor in evaluated.model.state_dict().items()}
                best = weights, metadata | {"epoch": epoch}
            if ranks.is_first and (finished or stopping or epoch % options.checkpoint_every == 0):
                if best:  # together with the checkpoint: a resumed fold finds the best weights up to it
                    folder.save_tensors(*best)
                    best = None
                folder.save_progress(Progress(history, test_logits, state.state_dict()))
            if stopping:
                raise_interrupted()

        result = finish_fold(job, model, task, evaluator, history, test_logits, logger) if logger else None
        return ranks.broadcast(result)


def logger_of(job: FoldJob, epoch: int) -> AbstractContextManager[FoldLogger | None]:
    """The first rank logs the fold from this epoch on."""
    return closing(FoldLogger(job.folder.path, epoch)) if job.ranks.is_first else nullcontext()


def finish_fold(
    job: FoldJob,
    model: nn.Module,
    task: Task,
    evaluator: Evaluator,
    history: History,
    test_logits: list[Tensor],
    logger: FoldLogger,
) -> FoldResult:
    """Evaluate the saved weights and write the result, on the first rank alone."""
    options, split, folder = job.recipe.options, job.split, job.folder
    known = evaluator.test.dataset.labels.cpu()
    metadata = folder.load_weights(model)
    validation = evaluate(model, evaluator.validation, options, task)
    if len(split.test):
        vectors, labels, outputs = embed(model, evaluator.test, options)
        logger.log_embeddings(vectors, labels, task.decide(task.decode(outputs)), split.test)
    if job.test_once:
        index = best_validation_record(history).epoch - 1
        test = evaluate(model, evaluator.test, options, task)
        history[index] = replace(history[index], test_loss=test.loss, test_score=test.score)
        test_logits[index] = test.logits
    if not len(split.validation) and not len(split.test):
        check_finite(evaluate(model, evaluator.train, options, task).logits, len(history))
    result = FoldResult(
        fold=job.fold,
        history=history,
        test_logits=torch.stack(test_logits),
        test_labels=known[torch.as_tensor(split.test)],
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        chosen=job.chosen,
        validation_logits=validation.logits if len(split.validation) else None,
        validation_labels=known[torch.as_tensor(split.validation)],
        task=task.name,
    )
    folder.save_weights(model, metadata | {"temperature": fold_temperature(result)})
    folder.save_result(result)  # last: a fold killed before this line resumes from its last epoch
    return result


def prepare_data(dataset: GraphDataset, job: FoldJob) -> tuple[GraphDataset, MakeModel, dict]:
    """Fit sizes and transforms on the training set; return the data, the model's constructor, and metadata to save."""
    train = job.split.train
    dataset = dataset.with_training_statistics(train)  # a model may depend on the sizes of training graphs
    info, transforms = asdict(dataset.info), dict[str, dict]()
    make_model = job.recipe.make_model
    for fit in job.recipe.transforms:
        transform = fit(dataset, train)
        dataset, make_model = transform.apply(dataset), transform.wrap(make_model)
        transforms[type(transform).__name__] = transform.to_dict()
    computed = {"precision": job.recipe.options.precision, "fast": job.recipe.options.fast}
    metadata = dict(job.recipe.metadata, fold=job.fold, info=info, transforms=transforms, **computed)
    return dataset.to(job.device), make_model, metadata


def seed_torch(device: torch.device, *keys: int, rank: int = 0) -> torch.Generator:
    """Seed torch (weights, dropout) on the CPU and on `device` by (run seed, fold, epoch), so that checkpoints need no generator state.

    Returns a CPU generator (shuffling) of the same seed on all ranks, whose dropout differs.
    """
    seed = int(np.random.SeedSequence(keys).generate_state(1, np.uint64)[0]) >> 1
    # `torch.manual_seed` seeds every kind of device. Without a GPU it formats the stack of every call, which takes 4 ms.
    seed_devices = torch.default_generator.manual_seed if device.type == "cpu" else torch.manual_seed
    seed_devices(seed + rank)
    return torch.Generator().manual_seed(seed)


def check_network(model: GraphModel | SklearnModel) -> GraphModel:
    if isinstance(model, nn.Module):
        return model
    raise TypeError(f"{type(model).__name__} is not a torch.nn.Module: train it with fit_sklearn_fold")


def is_finished(history: History, options: TrainerOptions) -> bool:
    """All epochs are done, or validation has not improved for `patience` epochs."""
    if len(history) >= options.epochs:
        return True
    if options.patience is None or len(history) < options.window:
        return False
    return len(history) - best_validation_record(history).epoch >= options.patience


def learned_epsilons(model: nn.Module) -> dict[str, nn.Parameter]:
    """The learned ε of each layer, by the layer's name."""
    return {name.removesuffix(".eps"): p for name, p in model.named_parameters() if name.endswith(".eps")}
