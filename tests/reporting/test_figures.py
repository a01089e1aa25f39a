"""Pictures of a run: what they show, and in which unit."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import auc, average_precision_score, roc_auc_score

from egin_dgl.evaluation.history import EpochRecord
from egin_dgl.reporting.one_run.figures import curves_figure
from egin_dgl.reporting.one_run.prediction_figures import (
    BinaryTarget,
    binary_targets,
    parity_figure,
    precision_recall_curve,
    probabilities_figure,
    roc_curve,
)


def history(metric="accuracy", epochs=20):
    numbers = dict.fromkeys(("train_loss", "val_loss", "test_loss", "lr", "grad_norm", "seconds"), 0.5)
    scores = dict.fromkeys(("train_score", "val_score", "test_score"), 0.75)
    return [EpochRecord(epoch=i + 1, metric=metric, **numbers, **scores) for i in range(epochs)]


def tick_labels(axis):
    axis.figure.draw_without_rendering()
    return [label.get_text() for label in axis.get_ticklabels()]


def test_curves_mark_the_chosen_epochs_and_use_percent():
    settings = {"model": {"dropout": 0.5}, "trainer": {"ema_decay": 0.99}}
    figure = curves_figure([history(), history()], "a run", settings, [4, 8])
    loss, score = figure.axes
    assert any(line.get_label() == "chosen epochs and their median" for line in score.lines)
    (line,) = (line for line in score.lines if line.get_linestyle() == "--")
    assert set(line.get_xdata()) == {6.0}
    assert all(text.endswith(" %") for text in tick_labels(score.yaxis))
    assert not any("%" in text for text in tick_labels(loss.yaxis))
    note = figure.get_supxlabel()
    assert "with dropout" in note and "without EMA weights" in note
    assert "EMA" not in curves_figure([history()], "a run", {}, [4]).get_supxlabel()
    automatic = curves_figure([history()], "a run", {"model": {"dropout": "auto"}}, [4]).get_supxlabel()
    assert "with dropout (unless the target is a number)" in automatic
    error = curves_figure([history("rmse")], "a run", {}, [4]).axes[1]
    assert error.get_ylabel() == "rmse (smaller is better)" and "%" not in "".join(tick_labels(error.yaxis))


def test_a_split_that_was_not_evaluated_has_no_curve():
    no_test = [replace(record, test_loss=math.nan, test_score=math.nan) for record in history()]
    labels = [line.get_label() for line in curves_figure([no_test], "a run", {}).axes[0].lines]
    assert labels == ["training", "validation"]


def test_curves_have_the_areas_of_scikit_learn():
    random = np.random.default_rng(0)
    probability = random.integers(0, 30, 200) / 30  # with ties
    truth = random.random(200) < probability
    target = BinaryTarget("active", probability, truth)
    assert auc(*roc_curve(target)) == pytest.approx(roc_auc_score(truth, probability))
    recall, precision = precision_recall_curve(target)
    assert np.sum(np.diff(recall) * precision[1:]) == pytest.approx(
        average_precision_score(truth, probability)
    )


def test_the_positive_class_each_class_or_each_known_label_has_a_curve():
    two = binary_targets(torch.rand(6, 2), torch.tensor([0, 1] * 3), ["no", "yes"])
    assert [target.name for target in two] == ["yes"]
    three = binary_targets(torch.rand(6, 3), torch.tensor([0, 1] * 3), ["a", "b", "c"])
    assert [target.name for target in three] == ["a", "b"]  # no graph is of class c
    labels = torch.tensor([[1.0, math.nan], [0.0, 1.0], [1.0, 1.0]])
    (label,) = binary_targets(torch.rand(3, 2), labels, ["toxic", "soluble"])  # all known ones are soluble
    assert label.name == "toxic" and list(label.truth) == [True, False, True]


@pytest.mark.parametrize(("classes", "curves"), [(2, 1), (5, 5), (30, 1)])
def test_many_classes_are_drawn_as_their_mean(classes, curves):
    labels = torch.arange(300) % classes
    scaled = torch.rand(300, classes, generator=torch.Generator().manual_seed(0)).softmax(dim=1)
    names = [f"c{i}" for i in range(classes)]
    figure = probabilities_figure(scaled, scaled.sqrt(), labels, names, "calibrated", "a run")
    roc, precision, reliability = figure.axes
    assert len(precision.lines) == curves and len(roc.lines) == curves + 1  # and the diagonal
    assert {line.get_label() for line in reliability.lines} >= {"calibrated", "before"}


def test_reliability_has_one_curve_where_calibration_changes_nothing():
    probabilities = torch.rand(50, 2).softmax(dim=1)
    labels = torch.arange(50) % 2
    *_, reliability = probabilities_figure(
        probabilities, probabilities, labels, ["no", "yes"], "calibrated (T = 1)", "a run"
    ).axes
    assert [line.get_label() for line in reliability.lines[1:]] == ["calibrated (T = 1)"]


def test_the_parity_band_holds_ninety_percent():
    truth = torch.linspace(-3, 3, 201, dtype=torch.float64)[:, None].repeat(1, 2)
    truth[:100, 1] = math.nan
    error = torch.linspace(-1, 1, 201, dtype=torch.float64)[torch.randperm(201)]
    first, second = parity_figure(truth + error[:, None], truth, ["a", "b"], "a run").axes
    assert [len(axes.collections[1].get_offsets()) for axes in (first, second)] == [201, 101]
    (text,) = first.get_legend_handles_labels()[1]
    assert text == "90% within ± 0.9"
    assert (
        len(parity_figure(truth.repeat(1, 10), truth.repeat(1, 10), [*"abcdefghijklmnopqrst"], "").axes) == 12
    )
