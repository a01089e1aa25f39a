"""Fit a kernel machine on one fold: the same job, history and protocols as a network.

What an epoch is to a network, a value of the penalty C is to a support vector machine: each is tried in turn, its
accuracies are a row of the history, and a protocol chooses between the rows, `selected` on the validation part. A
machine has no last epoch, and its decision values are no log-probabilities: the loss in the history, their
cross-entropy all the same, breaks ties between values of C and is no log loss.
"""

import math
import time
from contextlib import closing
from dataclasses import asdict

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.evaluation.calibration import fold_temperature
from egin_dgl.evaluation.history import EpochRecord, History, best_on_validation, kept_record, with_choice
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.ewl.inputs import as_graph_set
from egin_dgl.training.job import FoldJob, OnEpoch
from egin_dgl.training.tensorboard import FoldLogger


def fit_kernel_fold(dataset: GraphDataset, job: FoldJob, on_epoch: OnEpoch) -> FoldResult:
    """Count the colours of all graphs by the training graphs' table, then fit one machine per value of C."""
    from egin_dgl.ewl.kernel_machine import KernelMachine  # here, as networks need no scikit-learn

    before = job.folder.progress()
    if isinstance(before, FoldResult):
        job.folder.mend(before)
        return before
    model = job.recipe.make_model(dataset.info)
    if isinstance(model, nn.Module):
        raise TypeError(f"{type(model).__name__} is a network: it is trained by steps")
    graphs = as_graph_set(dataset, attributes=model.attributes, decimals=model.decimals)
    labels = dataset.labels
    kernel = model.make_kernel()
    counts = {"train": kernel.fit_transform(graphs.subset(job.split.train))}
    for part in ("validation", "test"):
        counts[part] = kernel.transform(graphs.subset(getattr(job.split, part)))
    history: History = []
    test_logits, machines, parameters = [], [], 0
    chosen_logits = None  # of the validation part
    with closing(FoldLogger(job.folder.path)) as tracker:
        for epoch, penalty in enumerate(model.penalties, start=1):
            start = time.perf_counter()
            fitted = model.make_machine(penalty, job.seed).fit(
                counts["train"], labels[job.split.train].numpy()
            )
            # Decided by what is saved of it: pairs that all but tie vote by the last digit.
            machine = KernelMachine.from_pipeline(kernel, fitted)
            logits = {
                part: machine.logits_from_counts(rows, dataset.info.classes) for part, rows in counts.items()
            }
            scores = {part: measured(logits[part], labels[getattr(job.split, part)]) for part in counts}
            record = EpochRecord(
                epoch=epoch,
                train_loss=scores["train"][0],
                train_accuracy=scores["train"][1],
                val_loss=scores["validation"][0],
                val_accuracy=scores["validation"][1],
                val_score=METRICS[job.recipe.options.monitor](
                    logits["validation"], labels[job.split.validation]
                ),
                test_loss=scores["test"][0],
                test_accuracy=scores["test"][1],
                lr=math.nan,
                grad_norm=math.nan,
                seconds=time.perf_counter() - start,
                C=penalty,
            )
            record = with_choice(history, record, window=1)
            history.append(record)
            test_logits.append(logits["test"])
            if len(job.split.validation) and best_on_validation(history) is record:
                chosen_logits = logits["validation"]
            machines.append(machine)
            tracker.epoch(record, {})
            on_epoch(job.fold, record)
            parameters = counts["train"].shape[1] * (1 if dataset.info.classes == 2 else dataset.info.classes)
    result = FoldResult(
        fold=job.fold,
        history=history,
        test_logits=torch.stack(test_logits),
        test_labels=labels[job.split.test],
        parameters=parameters,
        validation_logits=chosen_logits,
        validation_labels=labels[job.split.validation],
    )
    kept = kept_record(history)
    arrays = machines[kept.epoch - 1].arrays()
    metadata = dict(job.recipe.metadata, fold=job.fold, info=asdict(dataset.info), transforms={})
    metadata |= {"epoch": kept.epoch, "C": kept.C, "temperature": fold_temperature(result)}
    job.folder.save_tensors({name: torch.from_numpy(array) for name, array in arrays.items()}, metadata)
    job.folder.save_result(result)
    return result


def measured(logits: torch.Tensor, labels: torch.Tensor) -> tuple[float, float]:
    """Loss and accuracy; NaN for an empty part."""
    if len(labels) == 0:
        return math.nan, math.nan
    return cross_entropy(logits, labels).item(), (logits.argmax(dim=1) == labels).float().mean().item()
