import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from egin_dgl.data.splits import folds_from_column, make_folds
from egin_dgl.evaluation.summary import majority_accuracy


def test_majority_accuracy_is_that_of_the_baseline_on_the_same_test_sets():
    rng = np.random.default_rng(0)
    labels = rng.choice(4, size=50, p=[0.1, 0.4, 0.3, 0.2])
    given = folds_from_column(rng.choice(["train", "valid", "test"], size=50), labels)
    made = make_folds(labels, k=5)
    for splits in (
        [given.split(0, True)],
        [given.split(0, False)],
        [made.split(fold, True) for fold in range(5)],
    ):
        baseline, scores = DummyClassifier(strategy="most_frequent"), []
        for split in splits:
            baseline.fit(split.train, labels[split.train])
            scores.append(baseline.score(split.test, labels[split.test]))
        assert majority_accuracy(labels, splits) == pytest.approx(np.mean(scores))
