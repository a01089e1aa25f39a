"""The best constant prediction, against scikit-learn's."""

import numpy as np
import pytest
import torch
from sklearn.dummy import DummyClassifier, DummyRegressor

from egin_dgl.data import DatasetInfo
from egin_dgl.data.splits import folds_from_column, make_folds
from egin_dgl.tasks import Multiclass, Multilabel, Regression
from egin_dgl.tasks.task import baseline_score


def splits_of(labels):
    rng = np.random.default_rng(0)
    given = folds_from_column(rng.choice(["train", "valid", "test"], size=len(labels)), labels)
    made = make_folds(labels, k=5)
    return [[given.split(0, True)], [given.split(0, False)], [made.split(fold, True) for fold in range(5)]]


def test_of_classes_is_the_most_frequent_class():
    labels = np.random.default_rng(0).choice(4, size=50, p=[0.1, 0.4, 0.3, 0.2])
    for splits in splits_of(labels):
        baseline, scores = DummyClassifier(strategy="most_frequent"), []
        for split in splits:
            baseline.fit(split.train, labels[split.train])
            scores.append(baseline.score(split.test, labels[split.test]))
        found = baseline_score(Multiclass, torch.from_numpy(labels), DatasetInfo(1, 1, 4), splits)
        assert found == pytest.approx(np.mean(scores))


def test_of_values_is_the_mean():
    labels = np.random.default_rng(0).normal(5, 2, size=(50, 1))
    info = DatasetInfo(1, 1, task="regression", target_names=("y",))
    for splits in splits_of(labels):
        scores = []
        for split in splits:
            predicted = DummyRegressor().fit(split.train, labels[split.train]).predict(split.test)
            scores.append(np.sqrt(np.mean((predicted - labels[split.test][:, 0]) ** 2)))
        found = baseline_score(Regression, torch.from_numpy(labels), info, splits)
        assert found == pytest.approx(np.mean(scores))


def test_of_labels_ranks_nothing():
    labels = np.random.default_rng(0).integers(2, size=(50, 3)).astype(float)
    info = DatasetInfo(1, 1, task="multilabel", target_names=("a", "b", "c"))
    for splits in splits_of(labels):
        assert baseline_score(Multilabel, torch.from_numpy(labels), info, splits) == 0.5
