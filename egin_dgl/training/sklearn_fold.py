"""Fit a kernel machine or a forest on one fold, with the same job, history and protocols as a network.

Each value of the penalty C takes the place of an epoch: its metrics are one row of the history, from which protocols
select; a forest has a single row. Decision values are not log-probabilities: the loss in the history, their
cross-entropy, only breaks ties between values of C.
"""

import math
import time
from contextlib import closing
from dataclasses import asdict

import torch

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.evaluation.calibration import fold_temperature
from egin_dgl.evaluation.history import (
    EpochRecord,
    FoldResult,
    History,
    average_monitor,
    best_validation_record,
    selected_record,
)
from egin_dgl.models.estimators.sklearn_model import FittedModel, SklearnModel
from egin_dgl.tasks import TASKS
from egin_dgl.training.evaluator import score_outputs
from egin_dgl.training.job import FoldJob, OnEpoch
from egin_dgl.training.tensorboard import FoldLogger


def fit_sklearn_fold(dataset: GraphDataset, job: FoldJob, on_epoch: OnEpoch) -> FoldResult:
    """Compute the features of all graphs, fitted on the training graphs, then fit one machine per candidate."""
    progress = job.folder.progress()
    if isinstance(progress, FoldResult):
        return job.folder.verify(progress)
    model = job.recipe.make_model(dataset.info)
    if not isinstance(model, SklearnModel):
        raise TypeError(f"{type(model).__name__} is a torch.nn.Module: train it with fit_fold")
    options, split = job.recipe.options, vars(job.split)
    balanced = options.class_weights == "balanced"
    labels = {name: dataset.labels[chosen] for name, chosen in split.items()}
    task = TASKS[dataset.info.task].fit(labels["train"], dataset.info, options.loss)
    metric = task.metric(options.monitor)
    features = model.make_features()
    rows = {"train": features.fit_transform(model.read(dataset, split["train"]))}
    rows |= {name: features.transform(model.read(dataset, split[name])) for name in ("validation", "test")}
    targets = task.encode(labels["train"]).numpy()
    history: History = []
    test_logits, machines = [], []
    validation_logits = None  # of the selected machine
    with closing(FoldLogger(job.folder.path)) as logger:
        for epoch, candidate in enumerate(model.candidates, start=1):
            start = time.perf_counter()
            # Decide with the saved form: almost tied pairs depend on the last digit.
            machine = model.fit(rows["train"], targets, candidate, job.seed, balanced)
            train, validation, test = (
                score_outputs(task, machine.outputs(rows[name]), labels[name], metric)
                for name in ("train", "validation", "test")
            )
            record = EpochRecord(
                epoch=epoch,
                train_loss=train.loss,
                train_score=train.score,
                val_loss=validation.loss,
                val_score=validation.score,
                test_loss=test.loss,
                test_score=test.score,
                lr=math.nan,
                grad_norm=math.nan,
                seconds=time.perf_counter() - start,
                C=candidate,
                metric=metric.name,
            )
            record = average_monitor(history, record, window=1)
            history.append(record)
            test_logits.append(test.logits)
            if len(labels["validation"]) and best_validation_record(history) is record:
                validation_logits = validation.logits
            machines.append(machine)
            logger.log_epoch(record, {})
            on_epoch(job.fold, record)
    result = FoldResult(
        fold=job.fold,
        history=history,
        test_logits=torch.stack(test_logits),
        test_labels=labels["test"],
        parameters=machines[-1].parameters,
        validation_logits=validation_logits,
        validation_labels=labels["validation"],
        task=task.name,
    )
    selected = selected_record(history)
    arrays = FittedModel(model, features, machines[selected.epoch - 1]).arrays()
    metadata = dict(
        job.recipe.metadata, fold=job.fold, info=asdict(dataset.info), transforms={}, task=task.to_dict()
    )
    metadata |= {"epoch": selected.epoch, "C": selected.C, "temperature": fold_temperature(result)}
    job.folder.save_tensors({name: torch.from_numpy(array) for name, array in arrays.items()}, metadata)
    job.folder.save_result(result)
    return result
