"""Outcomes of training recipes, computed from histories."""

import math

import pytest
import torch
from docgen.recipes import (
    compare_recipes,
    compute_outcome,
    format_provenance,
    seed_spread,
    summarize_recipes,
    to_frame,
)

from egin_dgl.errors import DataError
from egin_dgl.evaluation.history import EpochRecord, FoldResult, average_monitor


def history(accuracies, window=1, test=0.5):
    """A history with these validation accuracies; `test` is a test accuracy for each epoch, or one for all."""
    rows, tests = [], test if isinstance(test, list) else [test] * len(accuracies)
    for epoch, (accuracy, other) in enumerate(zip(accuracies, tests, strict=True), start=1):
        record = EpochRecord(
            epoch=epoch,
            train_loss=1.0,
            train_score=0.5,
            val_loss=1 - accuracy,
            val_score=accuracy,
            test_loss=1 - other,
            test_score=other,
            lr=0.01,
            grad_norm=1.0,
            seconds=0.1,
        )
        rows.append(average_monitor(rows, record, window))
    return rows


def outcome(history, recipe, seed=0, fold=0, size="small", logits=None, labels=None):
    tests = torch.zeros(len(history), 1, 2), torch.zeros(1, dtype=torch.int64)
    result = FoldResult(fold, history, *tests, 0, None, logits, labels)
    keys = {"recipe": recipe, "size": size, "dataset": "MUTAG", "model": "EGIN", "seed": seed}
    return compute_outcome(result, **keys, made_with="torch 2")


def test_a_single_lucky_epoch_hardly_changes_the_window_accuracy():
    """Epochs fluctuate between 0.5 and 0.7, and one has 1.0."""
    fluctuating = [0.5, 0.7] * 20
    fluctuating[20] = 1.0
    found = outcome(history(fluctuating), "previous")
    assert found.selected_accuracy == 100 and found.selected_log_loss == 0
    assert found.window_accuracy == pytest.approx(65)
    assert found.fluctuation == pytest.approx(20, abs=1)
    constant = outcome(history([0.6] * 40, window=10), "combined")
    assert (constant.selected_accuracy, constant.window_accuracy) == (60, pytest.approx(60))
    assert constant.fluctuation == 0


@pytest.mark.parametrize(("window", "accuracy"), [(1, 55), (4, 70)])
def test_cross_selection_reads_each_set_at_the_epoch_of_the_other(window, accuracy):
    """Validation is best over epochs 21 to 24, where test is at 0.6; test over 31 to 34, where validation is at 0.8, or in
    the single epoch 11, where it is at 0.5."""
    validation, test = [0.5] * 40, [0.7] * 40
    validation[20:24], test[20:24] = [0.9] * 4, [0.6] * 4
    validation[30:34], test[30:34] = [0.8] * 4, [0.9] * 4
    test[10] = 1.0
    found = outcome(history(validation, window, test), "a")
    assert (found.selected_accuracy, found.peak, found.test) == (90, 90, 60)
    assert found.cross_accuracy_1 == pytest.approx(55) and found.cross_accuracy_10 == pytest.approx(70)
    assert found.cross_accuracy == pytest.approx(accuracy)
    assert found.cross_log_loss == pytest.approx(1 - accuracy / 100)


def test_cross_selection_is_unbiased_on_noise():
    """Both sets fluctuate at random between 0.5 and 0.7: selecting graphs show 0.7, the others the mean, 0.6."""
    random = torch.Generator().manual_seed(0)
    curves = (0.5 + 0.2 * torch.randint(2, (100, 2, 100), generator=random)).tolist()
    rows = to_frame([outcome(history(one, test=other), "a") for one, other in curves])
    assert rows["selected_accuracy"].mean() == pytest.approx(70)
    assert rows["cross_accuracy"].mean() == pytest.approx(60, abs=2)


def test_fluctuation_starts_after_the_tenth_epoch():
    start = [0.0, 1.0] * 5 + [0.5] * 20
    assert outcome(history(start), "previous").fluctuation == pytest.approx(50 / 20)


def test_calibration_error_is_that_of_the_validation_set():
    labels = torch.tensor([0, 1, 1, 0])
    certain, uncertain = torch.tensor([[50.0, 0.0]] * 4), torch.zeros(4, 2)
    assert outcome(history([0.5] * 20), "a", logits=certain, labels=labels).ece == pytest.approx(0.5)
    assert outcome(history([0.5] * 20), "a", logits=uncertain, labels=labels).ece == pytest.approx(0)
    assert math.isnan(outcome(history([0.5] * 20), "a").ece)


def test_a_recipe_with_missing_folds_has_no_row():
    rows = [outcome(history([0.6] * 20), name, fold=fold) for name in ("a", "b") for fold in (0, 1)]
    assert list(summarize_recipes(to_frame(rows), "small").index) == ["a", "b"]
    assert list(summarize_recipes(to_frame(rows[:3]), "small").index) == ["a"]


def test_recipes_are_compared_on_common_folds():
    first = [outcome(history([0.5] * 20), "a", fold=fold) for fold in range(4)]
    second = [outcome(history([0.6 + 0.01 * fold] * 20), "b", fold=fold) for fold in range(3)]
    row = compare_recipes(to_frame(first + second), "a", "b", "small").loc["MUTAG", "EGIN"]
    assert row["folds"] == 3
    assert row["window_accuracy_gain"] == pytest.approx(11)
    assert row["window_accuracy_error"] == pytest.approx(1 / math.sqrt(3))
    apart = to_frame([outcome(history([0.5] * 20), name, fold=fold) for fold, name in enumerate("ab")])
    with pytest.raises(DataError, match="no fold of small was trained by both a and b"):
        compare_recipes(apart, "a", "b", "small")


def test_provenance_names_seeds_folds_and_versions():
    folds = ((1, 0), (0, 2))
    rows = to_frame([outcome(history([0.5] * 20), "a", seed=seed, fold=fold) for seed, fold in folds])
    assert format_provenance(rows) == "Seeds 0, 1; folds 0, 2 of ten; torch 2."
    assert format_provenance(rows.assign(made_with=math.nan)) == "Seeds 0, 1; folds 0, 2 of ten."


def test_seed_spread_is_that_of_the_means_over_folds():
    rows = []
    for recipe, width in (("a", 4), ("b", 2)):
        for seed in range(20):
            for fold in (0, 1):
                test = 0.5 + width / 100 * (seed % 2) + (0.1 if fold else -0.1)
                rows.append(outcome(history([0.5] * 20, test=test), recipe, seed, fold, "seeds"))
    found = seed_spread(to_frame(rows), "a", "b", draws=200)
    assert found["seeds"] == 20 and found["ratio"] == pytest.approx(0.5)
    assert found["low"] < 0.5 < found["high"]
