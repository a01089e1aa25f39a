"""One fit on a split file, by our command or by chemprop's, with its test score and CPU time."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from rdkit import rdBase
from rdkit.Chem import MolFromSmiles
from sklearn.metrics import mean_squared_error, roc_auc_score

from egin_dgl.data.fingerprints import scaffold_groups
from egin_dgl.data.splits import make_folds, split_by_group_size

TRAIN = Path(__file__).resolve().parent.parent / "train.py"
CHEMPROP_EPOCHS = 50  # its default
# One thread on every side: the times are then those of the work, whatever else the machine does.
ENVIRONMENT = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


@dataclass(frozen=True)
class MoleculeSet:
    """Molecules with targets; `metric` selects epochs and scores test sets."""

    file: str
    targets: tuple[str, ...]
    metric: str  # auroc or rmse, the mean over targets
    training: tuple[str, ...] = ()  # overrides for networks


@dataclass(frozen=True)
class Score:
    """NaN where a program does not report it, or the task has no probabilities."""

    test: float  # the metric of the test molecules
    cpu_seconds: float  # of the process and its children
    validation: float = float("nan")  # the metric of the validation molecules, by which an epoch was selected
    log_loss: float = float("nan")  # of the test molecules before temperature scaling
    calibrated_log_loss: float = float("nan")  # and after


def write_split(data: MoleculeSet, root: Path, split: str, seed: int, path: Path) -> None:
    """A table of the valid molecules with the column `split` of train, val and test, which both sides read.

    random: 80 / 10 / 10 %, stratified, by the seed; scaffold: the split of DeepChem and OGB, the same for all seeds.
    """
    table = pd.read_csv(root / data.file).dropna(subset=list(data.targets), how="all")
    with rdBase.BlockLogs():
        table = table[[MolFromSmiles(text) is not None for text in table["smiles"]]]
    labels = table[list(data.targets)].to_numpy(dtype=float)
    if split == "scaffold":
        scaffolds, _ = scaffold_groups(tuple(table["smiles"]), acyclic=True)
        folds = split_by_group_size(scaffolds, labels)
    else:
        folds = make_folds(labels, k=10, seed=seed)
    parts = folds.split(0, validation=True)
    names = np.full(len(table), "train", dtype=object)
    names[parts.validation], names[parts.test] = "val", "test"
    path.parent.mkdir(parents=True, exist_ok=True)
    table[["smiles", *data.targets]].assign(split=names).to_csv(path, index=False)


def cpu_seconds(command: Sequence[str | Path], log: Path) -> float:
    """CPU time of a command and its children; its output goes to a file."""
    with log.open("w", encoding="utf-8") as output, TemporaryDirectory() as cache:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | ENVIRONMENT | {"EGIN_CACHE": cache},  # molecules are read anew, as chemprop does
        )
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"error: {' '.join(map(str, command))} failed, see {log}")
    return usage.ru_utime + usage.ru_stime


def fit_ours(data: MoleculeSet, table: Path, overrides: Sequence[str], seed: int, folder: Path) -> Score:
    """A run on the split of the table."""
    command = [
        sys.executable,
        TRAIN,
        "dataset=smiles",
        f"dataset.path={table}",
        f"dataset.target=[{','.join(data.targets)}]",
        "dataset.split_column=split",
        "trainer.fold_workers=1",
        f"trainer.monitor={data.metric}",
        *overrides,
        f"seed={seed}",
        f"hydra.run.dir={folder}",
    ]
    seconds = cpu_seconds(command, folder.with_suffix(".log"))
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    losses = (summary["calibration"] or {}).get("log_loss", {})
    return Score(
        test=summary["protocols"]["selected"]["mean"],
        cpu_seconds=seconds,
        validation=summary["validation_score"],
        log_loss=losses.get("before", float("nan")),
        calibrated_log_loss=losses.get("after", float("nan")),
    )


def fit_chemprop(data: MoleculeSet, table: Path, python: Path, seed: int, folder: Path) -> Score:
    """chemprop's own command with its defaults, and the metric of its predictions for the test molecules."""
    command = [
        python.parent / "chemprop",
        "train",
        *("--data-path", table, "--smiles-columns", "smiles", "--target-columns", *data.targets),
        *("--task-type", "regression" if data.metric == "rmse" else "classification"),
        *("--splits-column", "split", "--epochs", CHEMPROP_EPOCHS, "--accelerator", "cpu"),
        *("--num-workers", 0, "--pytorch-seed", seed, "--data-seed", seed, "--output-dir", folder),
    ]
    seconds = cpu_seconds(command, folder.with_suffix(".log"))
    truth = pd.read_csv(table).query("split == 'test'").reset_index(drop=True)
    predicted = pd.read_csv(folder / "model_0" / "test_predictions.csv")
    if list(predicted["smiles"]) != list(truth["smiles"]):
        sys.exit(f"error: {folder} has predictions of other molecules than the test set of {table}")
    scores = [target_score(data.metric, truth[name], predicted[name]) for name in data.targets]
    return Score(test=float(np.nanmean(scores)), cpu_seconds=seconds)


def target_score(metric: str, truth: pd.Series, predicted: pd.Series) -> float:
    """Over the known values of a target; NaN where all of them are equal."""
    known = truth.notna()
    truth, predicted = truth[known], predicted[known]
    if metric == "rmse":
        return float(mean_squared_error(truth, predicted) ** 0.5)
    return float(roc_auc_score(truth, predicted)) if truth.nunique() == 2 else float("nan")
