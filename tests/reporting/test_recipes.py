"""Recipes side by side: what is told of them are plain facts of their histories."""

import math

import pytest
import torch

from egin_dgl.errors import DataError
from egin_dgl.evaluation.history import EpochRecord, average_monitor
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.reporting.documents import recipes
from egin_dgl.reporting.documents.recipes import compared, frame, provenance, spread, tried


def history(accuracies, window=1, test=0.5):
    """`test` is a test accuracy for each epoch, or one for all."""
    rows, tests = [], test if isinstance(test, list) else [test] * len(accuracies)
    for epoch, (accuracy, other) in enumerate(zip(accuracies, tests, strict=True), start=1):
        parts = {"train_loss": 1.0, "train_accuracy": 0.5, "test_loss": 1 - other, "test_accuracy": other}
        record = EpochRecord(
            epoch=epoch,
            val_loss=1 - accuracy,
            val_accuracy=accuracy,
            val_score=accuracy,
            lr=0.01,
            grad_norm=1.0,
            seconds=0.1,
            **parts,
        )
        rows.append(average_monitor(rows, record, window))
    return rows


def outcome(history, recipe, seed=0, fold=0, size="small", logits=None, labels=None):
    tests = torch.zeros(len(history), 1, 2), torch.zeros(1, dtype=torch.int64)
    result = FoldResult(fold, history, *tests, 0, None, logits, labels)
    where = {"recipe": recipe, "size": size, "dataset": "MUTAG", "model": "EGIN", "seed": seed}
    return recipes.outcome(result, **where, made_with="torch 2")


def test_a_lucky_epoch_is_read_for_what_it_is():
    """Epochs that jump between 0.5 and 0.7, and one of 1.0: its own rule takes that, a stretch of ten hardly notices."""
    jumping = [0.5, 0.7] * 20
    jumping[20] = 1.0
    found = outcome(history(jumping), "before")
    assert found.own == 100 and found.own_log_loss == 0
    assert found.stretch == pytest.approx(65)
    assert found.jump == pytest.approx(20, abs=1)
    calm = outcome(history([0.6] * 40, window=10), "calm")
    assert (calm.own, calm.stretch, calm.jump) == (60, pytest.approx(60), 0)


@pytest.mark.parametrize(("window", "apart"), [(1, 55), (4, 70)])
def test_apart_each_part_is_read_where_the_other_is_best(window, apart):
    """Validation is best over epochs 21 to 24, where test is at 0.6; test over 31 to 34, where validation is at 0.8, or in
    the single epoch 11, where it is at 0.5."""
    validation, test = [0.5] * 40, [0.7] * 40
    validation[20:24], test[20:24] = [0.9] * 4, [0.6] * 4
    validation[30:34], test[30:34] = [0.8] * 4, [0.9] * 4
    test[10] = 1.0
    found = outcome(history(validation, window, test), "a")
    assert (found.own, found.peak, found.test) == (90, 90, 60)
    assert found.apart_1 == pytest.approx(55) and found.apart_10 == pytest.approx(70)
    assert found.apart == pytest.approx(apart) and found.apart_log_loss == pytest.approx(1 - apart / 100)


def test_luck_is_gone_where_other_graphs_are_read():
    """Two parts that jump between 0.5 and 0.7 at random: the graphs that chose say 0.7, the others the truth, 0.6."""
    random = torch.Generator().manual_seed(0)
    curves = (0.5 + 0.2 * torch.randint(2, (200, 2, 100), generator=random)).tolist()
    rows = frame([outcome(history(one, test=other), "a") for one, other in curves])
    assert rows["own"].mean() == pytest.approx(70) and rows["apart"].mean() == pytest.approx(60, abs=2)


def test_jumps_are_those_after_the_tenth_epoch():
    wild_start = [0.0, 1.0] * 5 + [0.5] * 20
    assert outcome(history(wild_start), "before").jump == pytest.approx(50 / 20)


def test_calibration_is_that_of_the_kept_model_on_its_validation_part():
    labels = torch.tensor([0, 1, 1, 0])
    sure, split = torch.tensor([[50.0, 0.0]] * 4), torch.zeros(4, 2)
    assert outcome(history([0.5] * 20), "a", logits=sure, labels=labels).ece == pytest.approx(0.5)
    assert outcome(history([0.5] * 20), "a", logits=split, labels=labels).ece == pytest.approx(0)
    assert math.isnan(outcome(history([0.5] * 20), "a").ece)


def test_a_recipe_that_lacks_folds_has_no_row():
    rows = [outcome(history([0.6] * 20), name, fold=fold) for name in ("a", "b") for fold in (0, 1)]
    assert list(tried(frame(rows), "small").index) == ["a", "b"]
    assert list(tried(frame(rows[:3]), "small").index) == ["a"]


def test_recipes_are_compared_on_the_folds_that_both_have():
    first = [outcome(history([0.5] * 20), "a", fold=fold) for fold in range(4)]
    second = [outcome(history([0.6 + 0.01 * fold] * 20), "b", fold=fold) for fold in range(3)]
    row = compared(frame(first + second), "a", "b", "small").loc["MUTAG", "EGIN"]
    assert row["folds"] == 3
    assert row["stretch_gain"] == pytest.approx(11)
    assert row["stretch_error"] == pytest.approx(1 / math.sqrt(3))


def test_recipes_that_share_no_fold_cannot_be_compared():
    rows = [outcome(history([0.5] * 20), name, fold=fold) for fold, name in enumerate("ab")]
    with pytest.raises(DataError, match="no fold of small was trained by a and by b"):
        compared(frame(rows), "a", "b", "small")


def test_what_folds_were_made_of_is_told():
    rows = frame([outcome(history([0.5] * 20), "a", seed=seed, fold=fold) for seed, fold in ((1, 0), (0, 2))])
    assert provenance(rows) == "Seeds 0, 1; folds 0, 2 of ten; torch 2."
    assert provenance(rows.assign(made_with=math.nan)) == "Seeds 0, 1; folds 0, 2 of ten."


def test_the_spread_over_seeds_is_that_of_the_means_over_folds():
    rows = []
    for recipe, width in (("a", 4), ("b", 2)):
        for seed in range(20):
            for fold in (0, 1):
                test = 0.5 + width / 100 * (seed % 2) + (0.1 if fold else -0.1)
                rows.append(outcome(history([0.5] * 20, test=test), recipe, seed, fold, "seeds"))
    found = spread(frame(rows), "a", "b", draws=200)
    assert found["seeds"] == 20 and found["ratio"] == pytest.approx(0.5)
    assert found["low"] < 0.5 < found["high"]
