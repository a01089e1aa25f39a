"""Run directories with given scores, or without results."""

import json
from dataclasses import replace
from zlib import crc32

import numpy as np
import torch
from running import SMALL, run_spec

from egin_dgl.evaluation.history import EpochRecord, FoldResult
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.run_dir import RunDir

SIX_EPOCHS = [
    *SMALL,
    "trainer.epochs=6",
    "seed=0",
]  # the written scores do not depend on the seed


def write_scores(directory, *options):
    """Replace the scores of finished folds by random ones that are the same on every machine.

    Trained scores differ between machines and may be equal for two models. EGIN-E gets 14 to 20 of 20 correct, other
    models 6 to 12, drawn for every epoch, fold and setting.
    """
    changing = sorted(o for o in options if not o.startswith(("cv.fold=", "trainer.checkpoint_every=")))
    least = 6 if any(option.startswith("model=") for option in options) else 14
    for path in directory.glob("fold_*/last.pt"):
        fold = int(path.parent.name.removeprefix("fold_"))
        rng = np.random.default_rng([crc32(" ".join(changing).encode()), fold])
        place = FoldDir(path.parent, fold)
        result = place.progress()
        scored = [with_scores(record, result.test_labels, rng, least) for record in result.history]
        history, logits = ([pair[i] for pair in scored] for i in (0, 1))
        place.save_result(replace(result, history=history, test_logits=torch.stack(logits)))


def with_scores(record: EpochRecord, labels, rng, least: int) -> tuple[EpochRecord, torch.Tensor]:
    """The record with accuracies of `least` to `least` + 6 in 20, and logits of the test set with this accuracy."""
    test, validation = rng.integers(least, least + 7, 2) / 20
    wrong = torch.zeros(len(labels), dtype=torch.bool)
    wrong[rng.permutation(len(labels))[: round((1 - test) * len(labels))]] = True
    margins = torch.as_tensor(rng.uniform(0.5, 3.0, len(labels))).float()
    logits = torch.zeros(len(labels), 2)
    logits[torch.arange(len(labels)), torch.where(wrong, 1 - labels, labels)] = margins
    changes = {"test_score": float(test)}
    if record.val_score == record.val_score:  # NaN: there is no validation set
        changes["val_score"] = float(validation)
        changes["val_loss"] = float(1 - validation + 0.01 * rng.random())
        changes |= {"monitor_score": changes["val_score"], "monitor_loss": changes["val_loss"]}
    return replace(record, **changes), logits


def record_overrides(directory, *options):
    """Record these options as the overrides of a run; without a run there, as a job that has only started."""
    run = RunDir(directory)
    if not run.exists:
        directory.mkdir(parents=True, exist_ok=True)
        run.register(run_spec(*SIX_EPOCHS, *options))
    record = json.loads(run.run_json.read_text())
    run.run_json.write_text(json.dumps(record | {"overrides": list(options)}, indent=1))


def as_dataset(directory, name):
    """Rename the dataset of the run in `directory`."""
    path = directory / "run.json"
    record = json.loads(path.read_text()) | {"dataset": name}
    record["settings"]["dataset"]["name"] = name
    del record["settings_crc32"]
    path.write_text(json.dumps(record))


def write_target_run(directory, task, errors, *options):
    """A finished run of another task without any training: three folds with the given error of each epoch and fold.

    Of a regression of two targets every prediction is wrong by the error; a multilabel prediction ranks that share of 20
    pairs of graphs wrongly. Validation and test scores are equal.
    """
    run, metric = RunDir(directory), {"regression": "rmse", "multilabel": "auroc"}[task]
    directory.mkdir(parents=True, exist_ok=True)
    run.register(
        run_spec(*SIX_EPOCHS, f"dataset.graphs={60 + (task == 'regression')}", *options)
    )  # data of its own
    record_overrides(directory, *options)
    model = "GIN" if "model=gin" in options else "EGIN-E"
    run.register_data(model, f"{task} data", task)
    run.folds.write_text(json.dumps({"k": 3, "folds": [[0], [1], [2]]}))
    truth = torch.tensor(
        [[0.0, 5.0], [1.0, 6.0], [0.0, 7.0]] if task == "regression" else [[1.0, 0.0]] * 20 + [[0.0, 1.0]]
    )
    results = []
    for fold, by_epoch in enumerate(errors):
        history, logits = [], []
        for epoch, error in enumerate(by_epoch, start=1):
            score = error if task == "regression" else 1 - error
            numbers = dict.fromkeys(("train_loss", "val_loss", "test_loss"), error)
            numbers |= dict.fromkeys(("train_score", "val_score", "test_score", "monitor_score"), score)
            rest = {"lr": 0.01, "grad_norm": 1.0, "seconds": 0.0, "monitor_loss": error, "metric": metric}
            history.append(EpochRecord(epoch=epoch, **numbers, **rest))
            wrong = torch.arange(len(truth)) < round(20 * error)
            ranked = torch.stack([torch.where(wrong, -1.0, 1.0), torch.where(wrong, 1.0, -1.0)], dim=1)
            ranked[-1] = 0.0  # the one graph of the other kind
            logits.append(truth + error if task == "regression" else ranked)
        result = FoldResult(fold, history, torch.stack(logits), truth, 100, None, logits[-1], truth, task)
        run.fold(fold).save_result(result)
        results.append(result)
    return results
