"""Runs read back and joined into cells."""

import json
import os
import shutil

import pytest
from run_folders import note_like_hydra

from egin_dgl.errors import ConfigError, DataError
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.evaluation.summary import summarize
from egin_dgl.reporting.many_runs.report import make_report
from egin_dgl.reporting.many_runs.run_groups import join
from egin_dgl.reporting.many_runs.table import result_tables
from egin_dgl.runs.reader import find_runs

FOLDS = [(f"cv.fold={fold}",) for fold in range(3)]


def summary_of(folder):
    return json.loads((folder / "summary.json").read_text())


def only_cell(*folders):
    (cell,) = join(find_runs(folders))
    return cell


def test_a_whole_run_gives_its_own_summary(run_of):
    """Every protocol, every metric, the intervals and the validation score."""
    cell, summary = only_cell(run_of()), summary_of(run_of())
    assert (cell.model, cell.dataset, cell.option) == ("EGIN-E", "bonds", "egin_e")
    assert cell.complete and cell.expected == 3
    for name, stored in summary["protocols"].items():
        score = cell.score(name)
        assert score.to_dict(cell.test_to_train) == {**stored, "interval": tuple(stored["interval"])}
        assert cell.interval(score) == tuple(stored["interval"])
    for metric in METRICS:
        assert cell.score("selected", metric).mean == pytest.approx(summary["metrics"][metric]["mean"])
    assert cell.validation_score == summary["validation_score"]


def test_folds_of_a_sweep_join_into_one_cross_validation(run_of, sweep):
    alone = [summary_of(run_of(*options))["protocols"]["common_epoch"]["epoch"] for options in FOLDS]
    assert len(set(alone)) > 1, "the folds must disagree, or the joint choice of an epoch is not seen"
    joined, whole = only_cell(sweep(*FOLDS)), only_cell(run_of())
    assert joined.complete and joined.protocols == whole.protocols
    stored = summarize(list(joined.results.values()), 3, validation=True)["protocols"]
    assert json.loads(json.dumps(stored)) == summary_of(run_of())["protocols"]


def test_seeds_pool_their_folds_and_each_must_be_complete(run_of, sweep):
    folder = sweep((), ("seed=1",))
    cell = only_cell(folder)
    assert cell.seeds == [0, 1] and cell.complete and len(cell.results) == cell.expected == 6
    each = [
        summary_of(run_of(*options))["protocols"]["selected"]["per_fold"] for options in ((), ("seed=1",))
    ]
    assert list(cell.score("selected").per_fold) == each[0] + each[1]
    (table,) = result_tables(find_runs([folder]))
    assert "The folds of 2 seeds are pooled." in table.notes
    (folder / "1_job" / "fold_02" / "last.pt").unlink()
    cell = only_cell(folder)
    assert not cell.complete and cell.state == "5/6 folds"


def test_of_a_fold_run_twice_the_newest_counts(run_of, sweep):
    folder = sweep((), FOLDS[1], ("model=gin",))
    path = folder / "1_job" / "fold_01" / "last.pt"
    shutil.copy(
        run_of("model=gin") / "fold_01" / "last.pt", path
    )  # other numbers, so that it shows which was kept
    values = {}
    for age in (-1000, 1000):
        time = (folder / "0_job" / "fold_01" / "last.pt").stat().st_mtime + age
        os.utime(path, (time, time))
        cell = join(find_runs([folder]))[0]
        assert cell.complete and cell.repeated == 1
        values[age] = cell.score("selected").per_fold
    assert values[-1000] == only_cell(run_of()).score("selected").per_fold
    gin = only_cell(run_of("model=gin")).score("selected").per_fold
    assert values[1000] == (values[-1000][0], gin[1], values[-1000][2]) != values[-1000]
    (table,) = result_tables(find_runs([folder]))
    assert "1 fold was run more than once: only the newest counts." in table.notes


def test_what_changes_no_number_does_not_split_a_cell(run_of, sweep):
    folder = sweep(FOLDS[0], ("cv.fold=1", "trainer.checkpoint_every=2"))
    assert only_cell(folder).state == "2/3 folds"


def test_a_missing_fold_makes_a_cell_incomplete_and_never_bold(run_of, sweep):
    folder = sweep((), ("model=gin",))
    (table,) = result_tables(find_runs([folder]))
    before = {entry.cell.model: entry for entry in table.entries.values()}
    assert before["EGIN-E"].best and not before["GIN"].best
    (folder / "0_job" / "fold_02" / "last.pt").unlink()
    report = make_report(find_runs([folder]))
    after = {entry.cell.model: entry for entry in report.tables[0].entries.values()}
    assert after["EGIN-E"].text.endswith("[2/3 folds]")
    assert (
        not after["EGIN-E"].best and not after["GIN"].best
    )  # one complete cell alone is not best of anything
    assert [run.reason for run in report.unfinished] == ["2 of 3 folds are finished"]


def test_a_better_but_incomplete_cell_takes_nothing_from_the_best_which_may_be_two(sweep):
    folder = sweep((), ("model=gin",), ("model=gin",))
    path = folder / "2_job" / "run.json"
    path.write_text(path.read_text().replace('"hidden_dim": 8', '"hidden_dim": 9'))
    (folder / "0_job" / "fold_01" / "last.pt").unlink()
    (table,) = result_tables(find_runs([folder]))
    first, *others = table.entries.values()
    assert first.score.mean > max(entry.score.mean for entry in others)
    assert [first.best, *(entry.best for entry in others)] == [False, True, True]


def test_one_fold_on_purpose_is_marked_but_not_a_failure(run_of):
    report = make_report(find_runs([run_of(*FOLDS[0])]))
    (entry,) = report.tables[0].entries.values()
    value = summary_of(run_of(*FOLDS[0]))["protocols"]["selected"]["mean"]
    assert entry.text == f"{100 * value:.1f} [1/3 folds]" and not report.unfinished


def test_a_truncated_checkpoint_is_named_and_its_fold_is_missing(sweep):
    folder = sweep(())
    path = folder / "0_job" / "fold_01" / "last.pt"
    path.write_bytes(path.read_bytes()[:1000])
    (run,) = find_runs([folder])
    assert run.missing == [1] and str(path) in run.reason


def test_a_broken_or_older_run_json_is_named(sweep):
    folder = sweep((), ("model=gin",))
    (folder / "0_job" / "run.json").write_text('{"model": ')
    record = json.loads((folder / "1_job" / "run.json").read_text())
    del record["model"]
    (folder / "1_job" / "run.json").write_text(json.dumps(record))
    runs = find_runs([folder])
    assert str(folder / "0_job" / "run.json") in runs[0].reason
    assert "damaged (it has no model)" in runs[1].reason
    assert not join(runs)


def test_a_job_that_failed_early_has_its_place_by_what_hydra_noted(sweep):
    folder = sweep((), ("model=gin",))
    failed = folder / "10_job"
    note_like_hydra(failed, "model=gin", "seed=1")
    (failed / "error.txt").write_text("the disk is full\n")
    runs = find_runs([folder])
    assert [run.folder.name for run in runs] == ["0_job", "1_job", "10_job"]
    assert runs[2].name == "10_job model=gin seed=1" and runs[2].reason == "the disk is full"
    gin = join(runs)[1]
    assert gin.model == "GIN" and gin.state == "3/6 folds"
    note_like_hydra(folder / "2_job", "model.hidden_dim=9")
    (folder / "2_job" / "error.txt").write_text("hidden_dim must be positive")
    lost = join(find_runs([folder]))[2]
    assert lost.model == "EGIN-E" and lost.state == "failed"


def test_hydra_notes_give_the_settings_that_run_json_keeps(run_of, tmp_path):
    note_like_hydra(tmp_path / "job")
    (job,), (run,) = find_runs([tmp_path]), find_runs([run_of()])
    assert job.settings == run.settings and not job.complete


def test_equal_settings_on_other_data_or_folds_are_refused(sweep):
    folder = sweep((), ())
    path = folder / "1_job" / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"data_sha256": "other"}))
    with pytest.raises(ConfigError, match="different data"):
        join(find_runs([folder]))
    path.write_text(json.dumps(record))
    path = folder / "1_job" / "folds.json"
    folds = json.loads(path.read_text())
    folds["parts"] = folds["parts"][::-1]
    path.write_text(json.dumps(folds))
    with pytest.raises(ConfigError, match="other folds"):
        join(find_runs([folder]))


def test_a_folder_without_runs_and_one_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="no run in or below"):
        find_runs([tmp_path])
    with pytest.raises(ConfigError, match="no such directory"):
        find_runs([tmp_path / "nowhere"])


def test_a_folder_given_twice_is_read_once(run_of):
    assert len(find_runs([run_of(), run_of().parent / run_of().name])) == 1
