"""Recipes of training side by side, by what validation says of them: pure functions of histories.

A recipe is calm if validation accuracy moves little from epoch to epoch, and good if it is high, and its log loss low, at the
epoch that is chosen. One epoch of a part of 18 graphs is chosen for its luck as much as for its worth, and the more so the
more the curve jumps about. So accuracy is read in three ways: as the mean over the ten epochs that end there; at the one epoch
that the recipe's own rule chooses, on the very graphs that chose it; and there on graphs that did not choose it.
"""

import math
from dataclasses import asdict, dataclass, fields, replace

import numpy as np
import pandas as pd

from egin_dgl.errors import DataError
from egin_dgl.evaluation.history import EpochRecord, History, average_monitor, best_validation_record
from egin_dgl.evaluation.metrics import ece
from egin_dgl.evaluation.result import FoldResult

WINDOW = 10  # epochs that every recipe is judged over
WINDOWS = (1, 5, 10, 20)  # that were tried to choose an epoch by
FIRST = 10  # jumps are those after this epoch, when the first steps are over


@dataclass(frozen=True)
class FoldOutcome:
    """One fold under one recipe: accuracies and jumps in points."""

    recipe: str
    size: str  # of the study it is part of
    dataset: str
    model: str
    seed: int
    fold: int
    jump: float  # mean of |Δ validation accuracy| from one epoch to the next
    stretch: float  # validation accuracy, mean of the best WINDOW epochs in a row
    log_loss: float  # of validation, at the end of that stretch
    own: float  # validation accuracy at the epoch that the recipe's own rule chooses
    own_log_loss: float
    ece: float  # expected calibration error on validation there, a fraction; NaN where its scores were not kept
    test: float  # test accuracy there
    peak: float  # validation accuracy at its best epoch: what a rule that knew the part could choose
    apart: float  # accuracy of each held-out part at the epoch that the other one chooses, mean of both
    apart_log_loss: float
    # The same accuracy, had the choice gone by a window of this length, whatever the recipe's own.
    apart_1: float
    apart_5: float
    apart_10: float
    apart_20: float
    made_with: str  # versions and arithmetic; NaN where they were not kept


COLUMNS = [field.name for field in fields(FoldOutcome)]
CELL = ["dataset", "model"]


def outcome(
    result: FoldResult, *, recipe: str, size: str, dataset: str, model: str, seed: int, made_with: str
) -> FoldOutcome:
    """What a trained fold comes to."""
    history = result.history
    best, own = best_validation_record(chosen_over(history, WINDOW)), best_validation_record(history)
    accuracy, loss = read_apart(history, window_of(history))
    accuracies = 100 * np.array([record.val_accuracy for record in history])
    return FoldOutcome(
        recipe=recipe,
        size=size,
        dataset=dataset,
        model=model,
        seed=seed,
        fold=result.fold,
        jump=np.abs(np.diff(accuracies))[FIRST - 1 :].mean(),
        stretch=accuracies[best.epoch - WINDOW : best.epoch].mean(),
        log_loss=best.val_loss,
        own=100 * own.val_accuracy,
        own_log_loss=own.val_loss,
        ece=calibration(result),
        test=100 * own.test_accuracy,
        peak=accuracies.max(),
        apart=accuracy,
        apart_log_loss=loss,
        **{f"apart_{window}": read_apart(history, window)[0] for window in WINDOWS},
        made_with=made_with,
    )


def read_apart(history: History, window: int) -> tuple[float, float]:
    """Accuracy and log loss of each held-out part at the epoch that the other one chooses, mean of both."""
    exchanged = list(map(parts_exchanged, history))
    read = [best_validation_record(chosen_over(one, window)) for one in (history, exchanged)]
    return 50 * sum(record.test_accuracy for record in read), sum(record.test_loss for record in read) / 2


def chosen_over(history: History, window: int) -> History:
    """The same history with the choice going by a window of this length."""
    again: History = []
    for record in history:
        again.append(average_monitor(again, record, window))
    return again


def window_of(history: History) -> int:
    """The length of the window that a recipe chooses by: before its end there is no score to choose by."""
    return 1 + sum(math.isnan(record.monitor_score) for record in history)


def parts_exchanged(record: EpochRecord) -> EpochRecord:
    """As if the part that tests had validated, and the one that validates tested: neither is trained on."""
    return replace(
        record,
        val_loss=record.test_loss,
        val_accuracy=record.test_accuracy,
        val_score=record.test_accuracy,
        test_loss=record.val_loss,
        test_accuracy=record.val_accuracy,
    )


def calibration(result: FoldResult) -> float:
    if result.validation_logits is None or result.validation_labels is None:
        return math.nan
    return ece(result.validation_logits, result.validation_labels)


def frame(outcomes: list[FoldOutcome]) -> pd.DataFrame:
    return pd.DataFrame([asdict(one) for one in outcomes], columns=COLUMNS)


def tried(found: pd.DataFrame, size: str) -> pd.DataFrame:
    """A row a recipe: means over the cells of a study, every cell weighing the same, and the spread over seeds.

    Recipes that lack folds are left out: a mean over fewer cells is no match for the others.
    """
    part = found[found["size"] == size]
    folds = part["recipe"].map(part["recipe"].value_counts())
    part = part[folds == folds.max()]
    cells = part.groupby(["recipe", *CELL], sort=False)
    means = (
        cells[["jump", "stretch", "log_loss", "ece", "own", "test"]]
        .mean()
        .groupby("recipe", sort=False)
        .mean()
    )
    seeds = part.groupby(["recipe", *CELL, "seed"], sort=False)["stretch"].mean()
    means["seeds"] = (
        seeds.groupby(["recipe", *CELL], sort=False).std(ddof=1).groupby("recipe", sort=False).mean()
    )
    return means


def compared(found: pd.DataFrame, first: str, second: str, size: str) -> pd.DataFrame:
    """A row a cell: both recipes on the same folds, the mean differences and their standard errors."""
    keys = [*CELL, "seed", "fold"]
    values = [name for name in COLUMNS if name not in ("recipe", "size", "made_with", *keys)]
    sides = [
        found[(found["recipe"] == name) & (found["size"] == size)].set_index(keys)[values]
        for name in (first, second)
    ]
    both = sides[0].join(sides[1], lsuffix="_first", rsuffix="_second", how="inner")
    if both.empty:
        raise DataError(f"no fold of {size} was trained by {first} and by {second}")
    for value in values:
        both[f"{value}_gain"] = both[f"{value}_second"] - both[f"{value}_first"]
    grouped = both.groupby(CELL)
    table = grouped.mean()
    errors = grouped.sem(ddof=1)
    for value in values:
        table[f"{value}_error"] = errors[f"{value}_gain"]
    return table.assign(folds=grouped.size())


def spread(found: pd.DataFrame, first: str, second: str, draws: int = 10_000) -> dict[str, float]:
    """How far the ten-fold mean of the test parts moves with the seed of training, and the ratio with its interval."""
    part = found[found["size"] == "seeds"].groupby(["recipe", "seed"])["test"].mean()
    means = [part[name].to_numpy() for name in (first, second)]
    rng = np.random.default_rng(0)
    drawn = [rng.choice(values, (draws, len(values))).std(axis=1, ddof=1) for values in means]
    low, high = np.percentile(drawn[1] / drawn[0], [2.5, 97.5])
    stds = [values.std(ddof=1) for values in means]
    return {
        **{f"mean_{name}": values.mean() for name, values in zip(("first", "second"), means, strict=True)},
        **{f"std_{name}": std for name, std in zip(("first", "second"), stds, strict=True)},
        **{"seeds": len(means[0]), "ratio": stds[1] / stds[0], "low": low, "high": high},
    }


def provenance(found: pd.DataFrame) -> str:
    """What folds were made of, in a sentence; of those that did not keep it, seeds and folds alone."""
    seeds, folds = (sorted(found[name].unique()) for name in ("seed", "fold"))
    made_with = "; ".join(found["made_with"].dropna().unique())
    told = f"Seeds {', '.join(map(str, seeds))}; folds {', '.join(map(str, folds))} of ten"
    return f"{told}; {made_with}." if made_with else f"{told}."
