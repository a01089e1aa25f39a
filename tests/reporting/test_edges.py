"""The study of edges over runs with given errors: signs, verdicts and the sentence."""

import pytest
from run_directories import write_target_run

from egin_dgl.reporting.edges.figure import edges_figure
from egin_dgl.reporting.edges.report import conclusion, studies_csv, study_table, worth_table
from egin_dgl.reporting.edges.study import VARIANTS, EdgeStudy, group_studies
from egin_dgl.reporting.many_runs.run_groups import group_runs
from egin_dgl.runs.reader import find_runs

BASE = (1.0, 1.2, 1.1)  # RMSE of each fold


@pytest.fixture
def study(tmp_path):
    """The study of runs whose errors are those of BASE plus the given ones, by the options of the variant."""

    def make(task="regression", scale=1.0, given=None, **added):
        for variant in VARIANTS:
            name = variant.name.replace(" ", "_")
            if name in added or name == "as_it_is":
                errors = [
                    [scale * (base + more)]
                    for base, more in zip(BASE, added.get(name, (0, 0, 0)), strict=True)
                ]
                write_target_run(tmp_path / name, task, errors, *variant.overrides)
        (groups,) = group_studies(group_runs(find_runs([tmp_path])))
        return EdgeStudy(groups, unchanged=frozenset({"rewired"} - set(groups)), given_region=given)

    return make


def test_a_larger_error_without_edges_is_what_edges_are_worth(study):
    one = study(constant=(0.5, 0.52, 0.48), permuted=(0, 0, 0), no_edges=(-0.3, 0.3, 0.1))
    worth = one.worths["constant"]
    assert worth.mean == pytest.approx(0.5) and worth.low < 0.5 < worth.high
    assert worth.low == pytest.approx(0.5 - worth.half_width)
    assert [one.verdict(v) for v in VARIANTS[1:]] == ["matters", "equivalent", "not applicable", "undecided"]
    assert one.region == pytest.approx(0.011)  # 1 % of the RMSE
    text = conclusion(one)
    assert text.startswith("EGIN-E on regression data: edge features are worth 0.500 ± 0.0")
    assert "their places 0.000 ± 0.000 (less than 0.011 of rmse)" in text and "(undecided)." in text


def test_a_smaller_error_without_edges_harms(study):
    one = study(constant=(-0.5, -0.5, -0.5), given=0.6)
    assert one.worths["constant"].mean == pytest.approx(-0.5) and one.verdict(VARIANTS[1]) == "equivalent"
    assert EdgeStudy(one.groups, given_region=0.1).verdict(VARIANTS[1]) == "harms"


def test_a_metric_in_percent_has_points(study):
    one = study("multilabel", scale=0.1, constant=(1, 1, 1), permuted=(0, 0, 0))
    assert one.metric == "auroc" and one.region == 0.01
    assert one.worths["constant"].mean == pytest.approx(0.1)
    assert "edge features are worth 10.0 ± 0.0 points of test auroc" in conclusion(one)
    notes = study_table(one).notes
    assert any("does not use them" in note for note in notes)  # equal scores with permuted features
    assert "Not run: no edges." in notes


def test_tables_csv_and_picture_have_every_variant(study):
    one = study(constant=(0.5, 0.6, 0.4))
    assert [line[0] for line in study_table(one).lines[1:]] == [variant.name for variant in VARIANTS]
    assert worth_table([one, one]).lines[1][:2] == ["EGIN-E", "regression data"]
    assert len(studies_csv([one, one]).splitlines()) == 1 + 2 * len(VARIANTS)
    assert len(edges_figure([one, one]).axes) == 4
