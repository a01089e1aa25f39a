"""Paired tests of two models on the same folds."""

import json
import re

import pytest
from run_directories import as_dataset

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.statistics import holm, paired_test
from egin_dgl.reporting.many_runs.comparison import ModelComparison, compare_models, comparison_table
from egin_dgl.reporting.many_runs.pivot import pivot_groups
from egin_dgl.reporting.many_runs.run_groups import group_runs
from egin_dgl.runs.reader import find_runs

GIN = ("model=gin",)


def pivot_of(directory):
    return pivot_groups(group_runs(find_runs([directory])))


def test_paired_test_uses_the_values_per_fold(run_of, sweep):
    pivot = pivot_of(sweep((), GIN))
    (found,) = compare_models(pivot, "egin_e", "gin", "selected")
    values = [
        json.loads((run_of(*options) / "summary.json").read_text())["protocols"]["selected"]["per_fold"]
        for options in ((), GIN)
    ]
    assert found.test == paired_test(*values, test_to_train=1.0)  # of three parts, one trains and one tests
    assert found.p_holm == found.test.p and found.means == tuple(sum(v) / 3 for v in values)
    assert "On bonds EGIN-E is better than GIN by" in found.sentence
    assert "not statistically significant" in found.sentence
    assert "optimistic" in compare_models(pivot, "egin_e", "gin", "common_epoch")[0].sentence


def test_a_difference_that_prints_as_zero_is_none():
    scores = [0.6, 0.7, 0.8]
    for other in ([0.6, 0.7, 0.8], [0.6003, 0.7, 0.8], [0.5999, 0.7, 0.8]):
        test = paired_test(scores, other, 1.0)
        found = ModelComparison("bonds", "EGIN", "GIN", (0.7, 0.7), test, 3, "selected", "accuracy", test.p)
        assert found.sentence == "On bonds EGIN and GIN are equal on average (3 folds)."
        assert comparison_table([found]).lines[1][3] == "+0.0"


def test_smaller_losses_are_better(sweep):
    (found,) = compare_models(pivot_of(sweep((), GIN)), "egin_e", "gin", "selected", "log_loss")
    order = ["EGIN-E", "GIN"] if found.means[0] < found.means[1] else ["GIN", "EGIN-E"]
    assert re.findall(r"EGIN-E|GIN", found.sentence) == order
    ahead = f"by {abs(found.means[0] - found.means[1]):.3f} in test log_loss by selected"
    assert ahead in found.sentence and "points" not in found.sentence
    table = comparison_table([found])
    assert "test log_loss (smaller is better)" in table.title
    _, numbers = table.lines
    assert numbers[1:3] == [f"{mean:.3f}" for mean in found.means]


def test_p_values_on_several_datasets_are_adjusted(sweep):
    directory = sweep((), GIN, (), GIN)
    for job in ("2_job", "3_job"):
        as_dataset(directory / job, "strokes")
    found = compare_models(pivot_of(directory), "egin_e", "gin", "selected")
    assert [one.dataset for one in found] == ["bonds", "strokes"]
    assert [one.p_holm for one in found] == holm([one.test.p for one in found])
    assert found[0].p_holm > found[0].test.p and "by Holm" in found[0].sentence


def test_models_are_found_by_option_or_name(sweep):
    pivot = pivot_of(sweep((), GIN))
    for name in ("egin_e", "EGIN-E", "egin-e", "Egin_E"):
        (found,) = compare_models(pivot, name, "gin", "selected")
        assert (found.first, found.second) == ("EGIN-E", "GIN")


def test_models_are_compared_on_folds_finished_in_both(sweep):
    directory = sweep((), GIN)
    (directory / "0_job" / "fold_02" / "last.pt").unlink()
    (found,) = compare_models(pivot_of(directory), "egin_e", "gin", "selected")
    assert found.test.folds == 2 and "2 of 3 folds" in found.sentence
    (directory / "1_job" / "fold_01" / "last.pt").unlink()
    with pytest.raises(ConfigError, match="1 finished folds in common"):
        compare_models(pivot_of(directory), "egin_e", "gin", "selected")


def test_runs_without_a_common_seed_are_not_compared(sweep):
    directory = sweep((), ("model=gin", "seed=1"))
    with pytest.raises(ConfigError, match="no seed in common"):
        compare_models(pivot_of(directory), "egin_e", "gin", "selected")


def test_runs_on_different_folds_are_not_compared(sweep):
    directory = sweep((), GIN)
    path = directory / "1_job" / "folds.json"
    folds = json.loads(path.read_text())
    folds["folds"] = folds["folds"][::-1]
    path.write_text(json.dumps(folds))
    with pytest.raises(ConfigError, match="different folds"):
        compare_models(pivot_of(directory), "egin_e", "gin", "selected")


def test_an_ambiguous_name_is_an_error(sweep):
    pivot = pivot_of(sweep((), GIN, ("model=gin", "model.learn_eps=true")))
    with pytest.raises(ConfigError, match=r"gin is ambiguous on bonds \(GIN; GIN-ε\): use one"):
        compare_models(pivot, "egin_e", "gin", "selected")
    assert compare_models(pivot, "egin_e", "GIN", "selected")[0].second == "GIN"
    assert compare_models(pivot, "egin_e", "gin_eps", "selected")[0].second == "GIN-ε"
    with pytest.raises(ConfigError, match="no run has a model 'gat'; valid: EGIN-E, GIN, GIN-ε"):
        compare_models(pivot, "gat", "gin", "selected")


def test_several_settings_of_one_model_are_an_error(sweep):
    pivot = pivot_of(sweep((), ("model.hidden_dim=12",), GIN))
    with pytest.raises(
        ConfigError, match="hidden_dim 8; EGIN-E hidden_dim 12.*give only the directories of one"
    ):
        compare_models(pivot, "egin_e", "gin", "selected")
