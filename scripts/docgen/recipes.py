"""Compare training recipes by their validation curves: pure functions of histories.

The best of a hundred epochs on a validation set of 18 graphs is chosen by luck as much as by merit, and the more so the more
the curve fluctuates. Accuracy is therefore read in three ways: as the mean over the best ten epochs in a row; at the epoch
that the recipe selects, on the graphs that selected it; and at that epoch on held-out graphs that did not select it (the
validation set and the test set each at the epoch that the other one selects).
"""

import math
from dataclasses import asdict, dataclass, fields, replace

import numpy as np
import pandas as pd

from egin_dgl.errors import DataError
from egin_dgl.evaluation.history import (
    EpochRecord,
    FoldResult,
    History,
    average_monitor,
    best_validation_record,
)
from egin_dgl.evaluation.multiclass import ece

WINDOW = 10  # epochs over which every recipe is compared
WINDOWS = (1, 5, 10, 20)  # lengths of the selection window that are compared
FIRST_EPOCH = 10  # fluctuation is computed after this epoch, when the first steps are over


@dataclass(frozen=True)
class FoldOutcome:
    """One fold under one recipe; accuracies and fluctuation in points."""

    recipe: str
    size: str  # of the study, see docs/recipes.yaml
    dataset: str
    model: str
    seed: int
    fold: int
    fluctuation: float  # mean of |Δ validation accuracy| from one epoch to the next
    window_accuracy: float  # validation accuracy, mean of the best WINDOW epochs in a row
    window_log_loss: float  # validation log loss at the end of these epochs
    selected_accuracy: float  # validation accuracy at the epoch that the recipe selects
    selected_log_loss: float
    ece: float  # expected calibration error on validation there, a fraction; NaN without validation logits
    test: float  # test accuracy there
    peak: float  # validation accuracy at its best epoch, an upper bound for any selection rule
    cross_accuracy: (
        float  # accuracy of either held-out set at the epoch that the other one selects, mean of both
    )
    cross_log_loss: float
    # The same accuracy for a selection window of this length, whatever the recipe's.
    cross_accuracy_1: float
    cross_accuracy_5: float
    cross_accuracy_10: float
    cross_accuracy_20: float
    made_with: str  # versions and arithmetic; NaN where they were not recorded


COLUMNS = [field.name for field in fields(FoldOutcome)]
CELL = ["dataset", "model"]


def compute_outcome(
    result: FoldResult, *, recipe: str, size: str, dataset: str, model: str, seed: int, made_with: str
) -> FoldOutcome:
    """The outcome of a trained fold."""
    history = result.history
    best, selected = best_validation_record(with_window(history, WINDOW)), best_validation_record(history)
    accuracy, loss = cross_selection(history, window_length(history))
    accuracies = 100 * np.array([record.val_score for record in history])
    return FoldOutcome(
        recipe=recipe,
        size=size,
        dataset=dataset,
        model=model,
        seed=seed,
        fold=result.fold,
        fluctuation=np.abs(np.diff(accuracies))[FIRST_EPOCH - 1 :].mean(),
        window_accuracy=accuracies[best.epoch - WINDOW : best.epoch].mean(),
        window_log_loss=best.val_loss,
        selected_accuracy=100 * selected.val_score,
        selected_log_loss=selected.val_loss,
        ece=validation_ece(result),
        test=100 * selected.test_score,
        peak=accuracies.max(),
        cross_accuracy=accuracy,
        cross_log_loss=loss,
        **{f"cross_accuracy_{window}": cross_selection(history, window)[0] for window in WINDOWS},
        made_with=made_with,
    )


def cross_selection(history: History, window: int) -> tuple[float, float]:
    """Accuracy and log loss of either held-out set at the epoch that the other one selects, mean of both."""
    swapped = list(map(swap_validation_and_test, history))
    records = [best_validation_record(with_window(one, window)) for one in (history, swapped)]
    accuracy = 50 * sum(record.test_score for record in records)
    return accuracy, sum(record.test_loss for record in records) / 2


def with_window(history: History, window: int) -> History:
    """The same history with a selection window of this length."""
    again: History = []
    for record in history:
        again.append(average_monitor(again, record, window))
    return again


def window_length(history: History) -> int:
    """The recipe's selection window: there is no score to select by before its end."""
    return 1 + sum(math.isnan(record.monitor_score) for record in history)


def swap_validation_and_test(record: EpochRecord) -> EpochRecord:
    """Exchange the roles of validation and test set; the model is trained on neither."""
    return replace(
        record,
        val_loss=record.test_loss,
        val_score=record.test_score,
        test_loss=record.val_loss,
        test_score=record.val_score,
    )


def validation_ece(result: FoldResult) -> float:
    if result.validation_logits is None or result.validation_labels is None:
        return math.nan
    return ece(result.validation_logits, result.validation_labels)


def to_frame(outcomes: list[FoldOutcome]) -> pd.DataFrame:
    return pd.DataFrame([asdict(one) for one in outcomes], columns=COLUMNS)


def summarize_recipes(outcomes: pd.DataFrame, size: str) -> pd.DataFrame:
    """A row per recipe: means over datasets and models with equal weights, and the standard deviation over seeds.

    Recipes with missing folds are left out: their means would be over fewer datasets.
    """
    chosen = outcomes[outcomes["size"] == size]
    folds = chosen["recipe"].map(chosen["recipe"].value_counts())
    chosen = chosen[folds == folds.max()]
    values = ["fluctuation", "window_accuracy", "window_log_loss", "ece", "selected_accuracy", "test"]
    cells = chosen.groupby(["recipe", *CELL], sort=False)
    means = cells[values].mean().groupby("recipe", sort=False).mean()
    seeds = chosen.groupby(["recipe", *CELL, "seed"], sort=False)["window_accuracy"].mean()
    stds = seeds.groupby(["recipe", *CELL], sort=False).std(ddof=1)
    means["seeds"] = stds.groupby("recipe", sort=False).mean()
    return means


def compare_recipes(outcomes: pd.DataFrame, first: str, second: str, size: str) -> pd.DataFrame:
    """A row per dataset and model: both recipes on the same folds, mean differences and their standard errors."""
    keys = [*CELL, "seed", "fold"]
    values = [name for name in COLUMNS if name not in ("recipe", "size", "made_with", *keys)]
    sides = [
        outcomes[(outcomes["recipe"] == name) & (outcomes["size"] == size)].set_index(keys)[values]
        for name in (first, second)
    ]
    both = sides[0].join(sides[1], lsuffix="_first", rsuffix="_second", how="inner")
    if both.empty:
        raise DataError(f"no fold of {size} was trained by both {first} and {second}")
    for value in values:
        both[f"{value}_gain"] = both[f"{value}_second"] - both[f"{value}_first"]
    grouped = both.groupby(CELL)
    table, errors = grouped.mean(), grouped.sem(ddof=1)
    for value in values:
        table[f"{value}_error"] = errors[f"{value}_gain"]
    return table.assign(folds=grouped.size())


def seed_spread(outcomes: pd.DataFrame, first: str, second: str, draws: int = 10_000) -> dict[str, float]:
    """Standard deviation over seeds of the ten-fold test mean, and the ratio of both with a bootstrap interval."""
    by_seed = outcomes[outcomes["size"] == "seeds"].groupby(["recipe", "seed"])["test"].mean()
    means = [by_seed[name].to_numpy() for name in (first, second)]
    rng = np.random.default_rng(0)
    drawn = [rng.choice(values, (draws, len(values))).std(axis=1, ddof=1) for values in means]
    low, high = np.percentile(drawn[1] / drawn[0], [2.5, 97.5])
    stds = [values.std(ddof=1) for values in means]
    return {
        **{f"mean_{name}": values.mean() for name, values in zip(("first", "second"), means, strict=True)},
        **{f"std_{name}": std for name, std in zip(("first", "second"), stds, strict=True)},
        **{"seeds": len(means[0]), "ratio": stds[1] / stds[0], "low": low, "high": high},
    }


def format_provenance(outcomes: pd.DataFrame) -> str:
    """Seeds, folds and, where they were recorded, versions, in a sentence."""
    seeds, folds = (sorted(outcomes[name].unique()) for name in ("seed", "fold"))
    made_with = "; ".join(outcomes["made_with"].dropna().unique())
    text = f"Seeds {', '.join(map(str, seeds))}; folds {', '.join(map(str, folds))} of ten"
    return f"{text}; {made_with}." if made_with else f"{text}."
