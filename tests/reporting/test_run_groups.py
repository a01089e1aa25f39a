"""Runs are read and grouped by their settings."""

import json
import os
import shutil

import pytest
from run_directories import record_overrides
from running import edit_settings

from egin_dgl.errors import ConfigError, DataError
from egin_dgl.evaluation.metrics import MULTICLASS
from egin_dgl.evaluation.summary import summarize
from egin_dgl.reporting.many_runs.report import make_report
from egin_dgl.reporting.many_runs.run_groups import group_runs
from egin_dgl.reporting.many_runs.table import result_tables
from egin_dgl.runs.reader import find_runs

FOLDS = [(f"cv.fold={fold}",) for fold in range(3)]


def summary_of(directory):
    return json.loads((directory / "summary.json").read_text())


def only_group(*directories):
    (group,) = group_runs(find_runs(directories))
    return group


def test_the_group_of_one_run_has_its_summary(run_of):
    """Every protocol, every metric, the intervals and the validation score."""
    group, summary = only_group(run_of()), summary_of(run_of())
    assert (group.model, group.dataset, group.option) == ("EGIN-E", "bonds", "egin_e")
    assert group.complete and group.expected == 3
    for name, stored in summary["protocols"].items():
        score = group.score(name)
        assert score.to_dict(group.test_to_train) == {**stored, "interval": tuple(stored["interval"])}
        assert group.interval(score) == tuple(stored["interval"])
    for metric in MULTICLASS:
        assert group.score("selected", metric).mean == pytest.approx(summary["metrics"][metric]["mean"])
    assert group.validation_score == summary["validation_score"]


def test_folds_of_a_sweep_form_one_cross_validation(run_of, sweep):
    alone = [summary_of(run_of(*options))["protocols"]["common_epoch"]["epoch"] for options in FOLDS]
    assert len(set(alone)) > 1, "the folds must disagree, or the joint choice of an epoch is not seen"
    joined, whole = only_group(sweep(*FOLDS)), only_group(run_of())
    assert joined.complete and joined.protocols == whole.protocols
    stored = summarize(list(joined.results.values()), MULTICLASS, 3, validation=True)["protocols"]
    assert json.loads(json.dumps(stored)) == summary_of(run_of())["protocols"]


def test_folds_of_several_seeds_are_pooled(run_of, sweep):
    directory = sweep((), ("seed=1",))
    group = only_group(directory)
    assert group.seeds == [0, 1] and group.complete and len(group.results) == group.expected == 6
    each = [
        summary_of(run_of(*options))["protocols"]["selected"]["per_fold"] for options in ((), ("seed=1",))
    ]
    assert list(group.score("selected").per_fold) == each[0] + each[1]
    (table,) = result_tables(find_runs([directory]))
    assert "The folds of 2 seeds are pooled." in table.notes
    (directory / "1_job" / "fold_02" / "last.pt").unlink()
    group = only_group(directory)
    assert not group.complete and group.state == "5/6 folds"


def test_the_newest_result_of_a_repeated_fold_counts(run_of, sweep):
    directory = sweep((), FOLDS[1], ("model=gin",))
    path = directory / "1_job" / "fold_01" / "last.pt"
    shutil.copy(
        run_of("model=gin") / "fold_01" / "last.pt", path
    )  # other numbers, so that the test sees which one counts
    values = {}
    for age in (-1000, 1000):
        time = (directory / "0_job" / "fold_01" / "last.pt").stat().st_mtime + age
        os.utime(path, (time, time))
        group = group_runs(find_runs([directory]))[0]
        assert group.complete and group.repeated == 1
        values[age] = group.score("selected").per_fold
    assert values[-1000] == only_group(run_of()).score("selected").per_fold
    gin = only_group(run_of("model=gin")).score("selected").per_fold
    assert values[1000] == (values[-1000][0], gin[1], values[-1000][2]) != values[-1000]
    (table,) = result_tables(find_runs([directory]))
    assert "1 fold ran more than once: the newest result counts." in table.notes


def test_settings_without_effect_do_not_split_a_group(run_of, sweep):
    directory = sweep(FOLDS[0], ("cv.fold=1", "trainer.checkpoint_every=2"))
    assert only_group(directory).state == "2/3 folds"


def test_a_group_with_a_missing_fold_is_never_bold(run_of, sweep):
    directory = sweep((), ("model=gin",))
    (table,) = result_tables(find_runs([directory]))
    before = {cell.group.model: cell for cell in table.cells.values()}
    assert before["EGIN-E"].best and not before["GIN"].best
    (directory / "0_job" / "fold_02" / "last.pt").unlink()
    report = make_report(find_runs([directory]))
    after = {cell.group.model: cell for cell in report.tables[0].cells.values()}
    assert after["EGIN-E"].text.endswith("[2/3 folds]")
    assert (
        not after["EGIN-E"].best and not after["GIN"].best
    )  # one complete group alone is not best of anything
    assert [run.reason for run in report.unfinished] == ["2 of 3 folds are finished"]


def test_incomplete_groups_do_not_compete_and_ties_are_both_bold(sweep):
    directory = sweep((), ("model=gin",), ("model=gin",))
    edit_settings(directory / "2_job", lambda settings: settings["model"].update(hidden_dim=9))
    (directory / "0_job" / "fold_01" / "last.pt").unlink()
    (table,) = result_tables(find_runs([directory]))
    first, *others = table.cells.values()
    assert first.score.mean > max(cell.score.mean for cell in others)
    assert [first.best, *(cell.best for cell in others)] == [False, True, True]


def test_a_single_requested_fold_is_marked_but_not_unfinished(run_of):
    report = make_report(find_runs([run_of(*FOLDS[0])]))
    (cell,) = report.tables[0].cells.values()
    value = summary_of(run_of(*FOLDS[0]))["protocols"]["selected"]["mean"]
    assert cell.text == f"{100 * value:.1f} [1/3 folds]" and not report.unfinished


def test_a_truncated_checkpoint_is_reported_and_its_fold_missing(sweep):
    directory = sweep(())
    path = directory / "0_job" / "fold_01" / "last.pt"
    path.write_bytes(path.read_bytes()[:1000])
    (run,) = find_runs([directory])
    assert run.missing == [1] and str(path) in run.reason


def test_a_broken_or_older_run_json_is_named(sweep):
    directory = sweep((), ("model=gin",))
    (directory / "0_job" / "run.json").write_text('{"model": ')
    record = json.loads((directory / "1_job" / "run.json").read_text())
    del record["model"]
    (directory / "1_job" / "run.json").write_text(json.dumps(record))
    runs = find_runs([directory])
    assert str(directory / "0_job" / "run.json") in runs[0].reason
    assert "damaged (model: Field required)" in runs[1].reason
    assert not group_runs(runs)


def test_a_job_that_failed_early_has_its_place_by_what_hydra_noted(sweep):
    directory = sweep((), ("model=gin",))
    failed = directory / "10_job"
    record_overrides(failed, "model=gin", "seed=1")
    (failed / "error.txt").write_text("the disk is full\n")
    runs = find_runs([directory])
    assert [run.folder.name for run in runs] == ["0_job", "1_job", "10_job"]
    assert runs[2].name == "10_job model=gin seed=1" and runs[2].reason == "the disk is full"
    gin = group_runs(runs)[1]
    assert gin.model == "GIN" and gin.state == "3/6 folds"
    record_overrides(directory / "2_job", "model.hidden_dim=9")
    (directory / "2_job" / "error.txt").write_text("hidden_dim must be positive")
    lost = group_runs(find_runs([directory]))[2]
    assert lost.model == "EGIN-E" and lost.state == "failed"


def test_settings_of_a_job_without_run_json(run_of, tmp_path):
    record_overrides(tmp_path / "job")
    (job,), (run,) = find_runs([tmp_path]), find_runs([run_of()])
    assert job.settings == run.settings and not job.complete


def test_equal_settings_with_other_data_or_folds_are_an_error(sweep):
    directory = sweep((), ())
    path = directory / "1_job" / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"data_sha256": "other"}))
    with pytest.raises(ConfigError, match="different data"):
        group_runs(find_runs([directory]))
    path.write_text(json.dumps(record))
    path = directory / "1_job" / "folds.json"
    folds = json.loads(path.read_text())
    folds["folds"] = folds["folds"][::-1]
    path.write_text(json.dumps(folds))
    with pytest.raises(ConfigError, match="other folds"):
        group_runs(find_runs([directory]))


def test_directories_without_runs_are_errors(tmp_path):
    with pytest.raises(DataError, match="no run.json in or below"):
        find_runs([tmp_path])
    with pytest.raises(ConfigError, match="no such directory"):
        find_runs([tmp_path / "nowhere"])


def test_a_directory_given_twice_is_read_once(run_of):
    assert len(find_runs([run_of(), run_of().parent / run_of().name])) == 1
