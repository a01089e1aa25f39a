"""Tables, ranks, comparisons and searches of tasks in whose metric smaller is better, or whose metric is another one."""

import csv
import io

import pytest
from run_directories import write_target_run

from egin_dgl.cli.sweep import search_value
from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import MULTILABEL, REGRESSION
from egin_dgl.evaluation.summary import summarize
from egin_dgl.reporting.formatting import metrics_text, unit_of
from egin_dgl.reporting.many_runs.comparison import compare_models
from egin_dgl.reporting.many_runs.report import make_report, to_csv
from egin_dgl.reporting.many_runs.table import result_tables
from egin_dgl.reporting.one_run.card import score_lines
from egin_dgl.reporting.one_run.terminal import targets_table
from egin_dgl.runs.reader import find_runs
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.trainer import is_finished

GOOD = [[0.4, 0.2, 0.3], [0.5, 0.3, 0.4], [0.3, 0.1, 0.2]]  # errors of three epochs in three folds
POOR = [[0.6, 0.5, 0.7], [0.7, 0.6, 0.8], [0.6, 0.5, 0.5]]
WIDE = ("model.hidden_dim=12",)


@pytest.fixture
def regressions(tmp_path):
    write_target_run(tmp_path / "0", "regression", GOOD)
    write_target_run(tmp_path / "1", "regression", POOR, "model=gin")
    return tmp_path


def test_the_smallest_error_is_bold_and_chosen_and_wins(regressions):
    (table,) = result_tables(find_runs([regressions]))
    assert table.metric == "rmse" and "test rmse (smaller is better)" in table.title
    good, poor = table.cells.values()
    assert (good.best, poor.best) == (True, False)
    assert good.score.per_fold == (0.2, 0.3, 0.1) and good.score.epochs == (2, 2, 2)
    (found,) = compare_models(table.pivot, "egin_e", "gin", "selected", "rmse")
    assert "EGIN-E is better than GIN by 0.333 in test rmse" in found.sentence
    assert [group.score("best_per_fold").mean for group in table.pivot.groups] == [
        pytest.approx(0.2),
        pytest.approx(1.6 / 3),
    ]


def test_validation_selects_the_setting_with_the_smallest_error(tmp_path):
    write_target_run(tmp_path / "0", "regression", POOR)
    write_target_run(tmp_path / "1", "regression", GOOD, *WIDE)
    (table,) = result_tables(find_runs([tmp_path]))
    (line,) = table.selections
    assert "validation selects hidden_dim 12 (validation rmse 0.200), test 0.200 ± 0.082" in line
    rows = [row for row in csv.DictReader(io.StringIO(to_csv([table]))) if row["protocol"] == "selected"]
    assert {row["validation_metric"] for row in rows} == {"rmse"}
    assert sorted(row["validation"] for row in rows) == ["0.200000", "0.533333"]


def test_a_table_per_task_and_a_note_on_those_without_the_metric(regressions):
    write_target_run(regressions / "2", "multilabel", GOOD)
    runs = find_runs([regressions])
    assert [table.metric for table in result_tables(runs)] == ["rmse", "auroc"]
    report = make_report(runs, compared=("egin_e", "gin"))  # only the regression has both
    assert [len(table.pivot.groups) for table in report.tables] == [2, 1]
    assert {row["metric"] for row in csv.DictReader(io.StringIO(to_csv(report.tables)))} == {"rmse", "auroc"}
    (table,) = result_tables(runs, metric="mae")
    assert "Left out, as their task has no mae: EGIN-E on multilabel data." in table.notes
    with pytest.raises(ConfigError, match="no run has the metric mcc; valid here: rmse, mae, r2"):
        result_tables(runs, metric="mcc")


def test_targets_have_metrics_of_their_own(tmp_path):
    results = write_target_run(tmp_path, "multilabel", GOOD)
    names = ["toxic", "soluble"]
    summary = summarize(results, MULTILABEL, 3, True, names) | {"baseline": 0.5, "task": "multilabel"}
    assert summary["metrics"]["auroc"]["mean"] == pytest.approx(0.8)
    for name in names:
        assert summary["targets"][name]["auroc"]["per_fold"] == pytest.approx([0.8, 0.7, 0.9])
    assert targets_table(summary).row_count == 2
    lines = score_lines(summary)
    assert lines[-2].startswith("| toxic | 80.0 ± 8.2 |") and lines[-1].startswith("| soluble |")
    many = {f"t{i}": summary["targets"]["toxic"] for i in range(30)}
    assert targets_table(summary | {"targets": many}).row_count == 13  # twelve, and how many more there are
    assert "targets" not in summarize(results, MULTILABEL, 3, True, names[:1])


def test_a_search_and_patience_follow_the_direction(tmp_path, capsys):
    (result, *_) = results = write_target_run(tmp_path, "regression", GOOD)
    summary = summarize(results, REGRESSION, 3, True)
    assert summary["validation_score"] == pytest.approx(0.2)
    assert search_value(summary) == pytest.approx(-0.2) and "minimizes rmse" in capsys.readouterr().err
    assert search_value({"metric": "auroc", "validation_score": 0.7}) == 0.7
    options = TrainerOptions(epochs=10, patience=1)
    assert not is_finished(result.history[:2], options) and is_finished(result.history, options)


def test_small_errors_keep_three_digits():
    unit = unit_of("rmse")
    assert unit.text(0.000421) == "0.000421" and unit.mean_std(0.00042, 0.00003) == "0.000420 ± 0.000030"
    assert unit.text(0.6334) == "0.633" and unit.text(123.4567) == "123.457" and unit.text(0.0) == "0.000"
    assert unit.round(0.000421) != unit.round(0.000422)
    assert unit_of("log_loss").text(0.0123) == "0.012" and unit_of("auroc").text(0.5) == "50.0"
    assert metrics_text({"auroc": 0.5, "mae": 0.00123, "r2": None}) == "auroc 0.500, mae 0.00123"
