"""Two models on the same folds."""

import json
import re

import pytest
from run_folders import as_dataset

from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.statistics import holm, paired_test
from egin_dgl.reporting.many_runs.comparison import compare_models, comparison_sheet
from egin_dgl.reporting.many_runs.pivot import lay_out
from egin_dgl.reporting.many_runs.run_groups import join
from egin_dgl.runs.reader import find_runs

GIN = ("model=gin",)


def layout_of(folder):
    return lay_out(join(find_runs([folder])))


def test_the_test_is_that_of_the_runs_per_fold_values(run_of, sweep):
    layout = layout_of(sweep((), GIN))
    (found,) = compare_models(layout, "egin_e", "gin", "selected")
    values = [
        json.loads((run_of(*options) / "summary.json").read_text())["protocols"]["selected"]["per_fold"]
        for options in ((), GIN)
    ]
    assert found.test == paired_test(*values, test_to_train=1.0)  # of three parts, one trains and one tests
    assert found.p_holm == found.test.p and found.means == tuple(sum(v) / 3 for v in values)
    assert found.sentence.startswith("On bonds no difference is shown: EGIN-E is")
    assert "optimistic" in compare_models(layout, "egin_e", "gin", "common_epoch")[0].sentence


def test_of_a_loss_the_smaller_is_better(sweep):
    (found,) = compare_models(layout_of(sweep((), GIN)), "egin_e", "gin", "selected", "log_loss")
    order = ["EGIN-E", "GIN"] if found.means[0] < found.means[1] else ["GIN", "EGIN-E"]
    assert re.findall(r"EGIN-E|GIN", found.sentence) == order
    ahead = f"by {abs(found.means[0] - found.means[1]):.3f} in test log_loss by selected"
    assert ahead in found.sentence and "points" not in found.sentence
    sheet = comparison_sheet([found])
    assert "test log_loss (smaller is better)" in sheet.title
    _, numbers = sheet.lines
    assert numbers[1:3] == [f"{mean:.3f}" for mean in found.means]


def test_on_several_datasets_the_p_values_are_adjusted(sweep):
    folder = sweep((), GIN, (), GIN)
    for job in ("2_job", "3_job"):
        as_dataset(folder / job, "strokes")
    found = compare_models(layout_of(folder), "egin_e", "gin", "selected")
    assert [one.dataset for one in found] == ["bonds", "strokes"]
    assert [one.p_holm for one in found] == holm([one.test.p for one in found])
    assert found[0].p_holm > found[0].test.p and "by Holm" in found[0].sentence


@pytest.mark.parametrize("name", ["egin_e", "EGIN-E", "egin-e", "Egin_E"])
def test_a_model_by_its_option_or_its_name(sweep, name):
    (found,) = compare_models(layout_of(sweep((), GIN)), name, "gin", "selected")
    assert (found.first, found.second) == ("EGIN-E", "GIN")


def test_only_folds_finished_in_both(sweep):
    folder = sweep((), GIN)
    (folder / "0_job" / "fold_02" / "last.pt").unlink()
    (found,) = compare_models(layout_of(folder), "egin_e", "gin", "selected")
    assert found.test.folds == 2 and "2 of 3 folds" in found.sentence
    (folder / "1_job" / "fold_01" / "last.pt").unlink()
    with pytest.raises(ConfigError, match="1 finished folds in common"):
        compare_models(layout_of(folder), "egin_e", "gin", "selected")


def test_other_folds_are_refused(sweep):
    folder = sweep((), ("model=gin", "seed=1"))
    with pytest.raises(ConfigError, match="no seed in common"):
        compare_models(layout_of(folder), "egin_e", "gin", "selected")


def test_changed_parts_are_refused(sweep):
    folder = sweep((), GIN)
    path = folder / "1_job" / "folds.json"
    folds = json.loads(path.read_text())
    folds["folds"] = folds["folds"][::-1]
    path.write_text(json.dumps(folds))
    with pytest.raises(ConfigError, match="different folds"):
        compare_models(layout_of(folder), "egin_e", "gin", "selected")


def test_what_a_name_may_mean_is_told(sweep):
    layout = layout_of(sweep((), GIN, ("model=gin", "model.learn_eps=true")))
    with pytest.raises(ConfigError, match=r"gin may be several on bonds \(GIN; GIN-ε\): name one"):
        compare_models(layout, "egin_e", "gin", "selected")
    assert compare_models(layout, "egin_e", "GIN", "selected")[0].second == "GIN"
    assert compare_models(layout, "egin_e", "gin_eps", "selected")[0].second == "GIN-ε"
    with pytest.raises(ConfigError, match="no run is of a model 'gat'; there are: EGIN-E, GIN, GIN-ε"):
        compare_models(layout, "gat", "gin", "selected")


def test_several_settings_of_one_model_are_told(sweep):
    layout = layout_of(sweep((), ("model.hidden_dim=12",), GIN))
    with pytest.raises(ConfigError, match="hidden_dim 8; EGIN-E hidden_dim 12.*give only the folders of one"):
        compare_models(layout, "egin_e", "gin", "selected")
