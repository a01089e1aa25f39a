import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from egin_dgl.evaluation.history import best_validation_record
from egin_dgl.models import EGINE
from egin_dgl.runs.fold_dir import read_history
from egin_dgl.training.nested import Candidate, fit_nested_fold


def ignore(fold, record):
    pass


@pytest.fixture(params=[1, 3])
def candidates(request, make_job):
    """Selected by single epochs, or by the mean of three."""
    return [
        Candidate(
            {"model.hidden_dim": hidden, "optimizer.lr": lr},
            replace(
                make_job(monitor_window=request.param).recipe,
                make_model=partial(EGINE, hidden_dim=hidden, num_layers=2),
                make_optimizer=partial(torch.optim.Adam, lr=lr),
            ),
        )
        for hidden in (4, 8)
        for lr in (1e-5, 0.02)
    ]


def test_best_setting_on_validation_is_trained_and_tested_once(data, make_job, candidates):
    job = make_job()
    result = fit_nested_fold(data, job, ignore, candidates)
    inner = [read_history(job.folder.candidate(i).history) for i in range(4)]
    ranks = [best_validation_record(history).validation_rank for history in inner]
    winner = ranks.index(max(ranks))
    window = candidates[winner].recipe.options.window
    best = max(
        sum(record.val_score for record in history[end - window : end]) / window
        for history in inner
        for end in range(window, len(history) + 1)
    )
    assert max(ranks)[0] == pytest.approx(best)
    assert result.chosen == candidates[winner].settings
    assert all(math.isnan(record.test_score) for history in inner for record in history)
    read = [record.epoch for record in result.history if not math.isnan(record.test_score)]
    assert read == [best_validation_record(result.history).epoch]
    trained = [(r.train_loss, r.val_loss) for r in result.history]
    assert trained == [(r.train_loss, r.val_loss) for r in inner[winner]]


def test_selection_does_not_depend_on_test_labels(data, make_job, candidates):
    one = fit_nested_fold(data, make_job(), ignore, candidates)
    labels = data.labels.clone()
    test = torch.as_tensor(make_job().split.test)
    labels[test] = 1 - labels[test]
    two = fit_nested_fold(replace(data, labels=labels), make_job(folder="other"), ignore, candidates)
    assert one.chosen == two.chosen
    score = [best_validation_record(result.history).test_score for result in (one, two)]
    assert score[0] == pytest.approx(1 - score[1])


def test_finished_nested_fold_is_not_trained_again(data, make_job, candidates):
    seen = []
    first = fit_nested_fold(data, make_job(), lambda fold, record: seen.append(record.epoch), candidates)
    assert seen == list(range(1, 31))  # four candidates and the winner, six epochs each
    seen.clear()
    again = fit_nested_fold(data, make_job(), lambda fold, record: seen.append(record.epoch), candidates)
    assert not seen and again.chosen == first.chosen and repr(again.history) == repr(first.history)
