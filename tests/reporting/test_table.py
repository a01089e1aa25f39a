"""Rows, columns, notes and formats of result tables."""

import csv
import io
import re

import pytest
from rich.console import Console
from run_directories import as_dataset, record_overrides

from egin_dgl.errors import ConfigError
from egin_dgl.reporting.many_runs.comparison import rank_table
from egin_dgl.reporting.many_runs.paper import PUBLISHED
from egin_dgl.reporting.many_runs.pivot import pivot_groups
from egin_dgl.reporting.many_runs.renderers import to_latex, to_markdown
from egin_dgl.reporting.many_runs.report import make_report, results_figure, to_csv, write_report
from egin_dgl.reporting.many_runs.run_groups import group_runs
from egin_dgl.reporting.many_runs.table import ResultTable, result_tables
from egin_dgl.runs.reader import find_runs

WIDE, NARROW = ("model.hidden_dim=12",), ("model.hidden_dim=8",)


def table_of(directory, **options) -> ResultTable:
    (table,) = result_tables(find_runs([directory]), **options)
    return table


def pivot_of_jobs(directory, *jobs):
    """The pivot of jobs that have not started, and of a run that has the name of their model."""
    for number, options in enumerate(jobs):
        record_overrides(directory / "planned" / str(number), *options)
    return pivot_groups(group_runs(find_runs([directory])))


def test_models_by_datasets(sweep):
    directory = sweep((), ("model=gin",), (), ("model=gin",))
    for job in (2, 3):
        as_dataset(directory / f"{job}_job", "strokes")
    pivot = pivot_groups(group_runs(find_runs([directory])))
    assert pivot.rows == (("EGIN-E",), ("GIN",)) and pivot.columns == ("bonds", "strokes")
    assert pivot.row_headers == ["model"] and not pivot.keys and pivot.subject == ""


def test_two_settings_of_one_model_make_sorted_rows_and_columns(sweep):
    edges = ("model.edge_dim=16", "model.edge_dim=4")
    pivot = pivot_of_jobs(sweep(()), *((*hidden, edge) for hidden in (WIDE, NARROW) for edge in edges))
    assert pivot.row_keys == ("model.hidden_dim",) and pivot.column_key == "model.edge_dim"
    assert pivot.rows == (("8",), ("12",)) and pivot.columns == ("4", "16")
    assert pivot.column_headers == ["edge_dim 4", "edge_dim 16"] and pivot.subject == "EGIN-E on bonds"
    assert len(pivot.groups) == 4 and {group.model for group in pivot.groups} == {"EGIN-E"}


def test_values_of_a_random_search_are_rows_with_four_digits(sweep):
    """As columns they would leave most cells empty."""
    drawn = ("0.0030283883089322", "0.0165799740649274", "0.0078811196004522", "0.0019629")
    jobs = [(*(NARROW if i % 2 else WIDE), f"optimizer.lr={lr}") for i, lr in enumerate(drawn)]
    pivot = pivot_of_jobs(sweep(()), *jobs)
    assert pivot.row_keys == ("model.hidden_dim", "optimizer.lr") and pivot.column_key == "dataset"
    labels = [pivot.row_label(row) for row in pivot.rows]
    assert "hidden_dim 12, lr 0.003028" in labels and "hidden_dim 8, lr 0.01658" in labels


def test_a_setting_of_another_model_does_not_vary(sweep):
    pivot = pivot_groups(group_runs(find_runs([sweep((), ("model=gin",))])))
    assert pivot.keys == () and pivot.rows == (("EGIN-E",), ("GIN",)) and pivot.columns == ("bonds",)


def test_an_optimizer_is_one_setting(sweep):
    """Though its class and its momentum differ too."""
    pivot = pivot_of_jobs(sweep(()), ("optimizer=adam",), ("optimizer=sgd",))
    assert pivot.keys == ("optimizer",) and pivot.rows == (("adam",), ("sgd",))


def test_settings_that_differ_between_models_are_noted(sweep):
    table = table_of(sweep(NARROW, ("model=gin", *WIDE)))
    assert table.pivot.keys == ()
    assert "Settings that differ: model.hidden_dim (8, 12)." in table.notes


def test_the_notes_name_the_setting_that_validation_selects(sweep):
    table = table_of(sweep(NARROW, WIDE))
    text = "\n".join(table.notes)
    assert "Do not select hidden_dim by this table: it shows test scores." in text
    best = max(table.pivot.groups, key=lambda group: group.validation_score)
    mean = f"{100 * best.score('selected').mean:.1f}"
    line = next(note for note in table.notes if "validation selects" in note)
    assert f"hidden_dim {best.settings['model.hidden_dim']} " in line and f"test {mean} ±" in line


def test_all_formats_have_the_same_numbers(sweep):
    table = table_of(sweep(NARROW, WIDE))
    rows = [row for row in csv.DictReader(io.StringIO(to_csv([table]))) if row["protocol"] == "selected"]
    assert [row["model.hidden_dim"] for row in rows] == ["8", "12"]
    for row, group in zip(rows, table.pivot.groups, strict=True):
        score = group.score("selected")
        low, high = group.interval(score)
        expected = [f"{100 * number:.4f}" for number in (score.mean, score.std, low, high)]
        assert [row[name] for name in ("mean", "std", "low", "high")] == expected
        assert (row["folds"], row["expected_folds"], row["complete"]) == ("3", "3", "true")
        mean, std = f"{100 * score.mean:.1f}", f"{100 * score.std:.1f}"
        assert f"{mean} ± {std}" in to_markdown(table.text_table) and rf"{mean} $\pm$ {std}" in to_latex(
            table.text_table
        )


def test_a_holdout_is_complete_with_one_split(sweep):
    directory = sweep(("cv=holdout",), ("cv=holdout", "model=gin"))
    table = table_of(directory)
    assert [cell.best for cell in table.cells.values()] == [True, False]
    texts = [to_markdown(table.text_table), to_latex(table.text_table)]
    assert not any(re.search(r"±|\\pm|\d+/\d+", text) for text in texts)
    assert "one split" in table.title and "one split" in results_figure(table).get_supxlabel()
    for row in csv.DictReader(io.StringIO(to_csv([table]))):
        assert (row["folds"], row["expected_folds"], row["complete"], row["std"]) == ("1", "1", "true", "")


def test_the_csv_has_the_validation_score_of_the_notes(sweep):
    table = table_of(sweep(NARROW, WIDE))
    rows = [row for row in csv.DictReader(io.StringIO(to_csv([table]))) if row["protocol"] == "selected"]
    best = max(rows, key=lambda row: float(row["validation"]))
    assert best["validation_metric"] == "accuracy"
    assert f"(validation accuracy {float(best['validation']):.1f}" in table.selections[0]
    assert f"hidden_dim {best['model.hidden_dim']} " in table.selections[0]


def test_optimistic_protocols_are_marked_in_every_format(sweep):
    directory = sweep(("cv=paper", "cv.k=3"), ("cv=paper", "cv.k=3", *WIDE))
    table = table_of(directory)
    assert table.protocol == "common_epoch" and "common_epoch (optimistic)" in table.title
    assert all("(optimistic)" in note for note in table.notes if "common_epoch" in note)
    marks = {row["protocol"]: row["optimistic"] for row in csv.DictReader(io.StringIO(to_csv([table])))}
    assert marks == {"common_epoch": "true", "best_per_fold": "true", "last": "false", "last_20": "false"}
    with pytest.raises(ConfigError, match="no run has the protocol selected; valid here: common_epoch"):
        table_of(directory, protocol="selected")


def test_runs_without_a_validation_set_have_no_selected_score(sweep):
    table = table_of(sweep((), ("model=gin", "cv=paper", "cv.k=3")))
    texts = {cell.group.model: cell.text for cell in table.cells.values()}
    assert table.protocol == "selected" and texts["GIN"] == "–" and "±" in texts["EGIN-E"]
    assert any("no accuracy by selected; these runs have common_epoch" in note for note in table.notes)


def test_all_protocols_and_other_metrics(sweep):
    directory = sweep(())
    assert [table.protocol for table in result_tables(find_runs([directory]), "all")][:2] == [
        "selected",
        "common_epoch",
    ]
    for protocol in ("selected", "last_20"):
        (cell,) = table_of(directory, metric="auroc", protocol=protocol).cells.values()
        assert len(cell.score.per_fold) == 3 and 0 <= cell.score.mean <= 1
    with pytest.raises(ConfigError, match="no metric 'speed'; valid: rmse"):
        table_of(directory, metric="speed")
    with pytest.raises(ConfigError, match="no protocol 'lucky'; valid: selected"):
        table_of(directory, protocol="lucky")


def test_the_smallest_loss_is_best_and_not_in_percent(sweep):
    directory = sweep((), ("model=gin",), (), ("model=gin",))
    for job in (2, 3):
        as_dataset(directory / f"{job}_job", "strokes")
    table = table_of(directory, metric="log_loss")
    means = {place: cell.score.mean for place, cell in table.cells.items()}
    smallest = min(round(mean, 3) for mean in means.values())
    assert {place for place, cell in table.cells.items() if cell.best} == {
        place for place, mean in means.items() if round(mean, 3) == smallest
    }
    first, _, won = rank_table(table).lines[1]
    assert round(means[(first,), "bonds"], 3) == smallest and won == "2"
    assert "test log_loss (smaller is better)," in table.title and "%" not in table.title
    text = to_markdown(table.text_table)
    rows = [row for row in csv.DictReader(io.StringIO(to_csv([table]))) if row["protocol"] == "selected"]
    assert [row["mean"] for row in rows] == [f"{mean:.6f}" for mean in means.values()]
    assert all(f"{mean:.3f} ± " in text for mean in means.values())


def test_last_20_shows_how_many_epochs_it_averages(sweep):
    table = table_of(sweep((), ("trainer.epochs=4",)), protocol="last_20")
    note = "last_20: the epoch is chosen in advance: mean of the last 4 to 6."
    assert note in to_markdown(table.text_table) and note.replace("_", r"\_") in to_latex(table.text_table)
    rows = [row for row in csv.DictReader(io.StringIO(to_csv([table]))) if row["averaged"]]
    assert [(row["protocol"], row["averaged"]) for row in rows] == [("last_20", "4"), ("last_20", "6")]


def test_published_numbers_are_shown_with_the_difference(sweep):
    directory = sweep((), ("model=gin",))
    as_dataset(directory / "0_job", "MUTAG")
    as_dataset(directory / "1_job", "MUTAG")
    (directory / "1_job" / "fold_00" / "last.pt").unlink()
    table = table_of(directory, paper=True)
    egin_e, gin = table.cells.values()
    published = PUBLISHED["EGIN-E", "MUTAG"].mean
    difference = f"{100 * egin_e.score.mean - published:+.1f}".replace("-", "−")
    assert egin_e.text.endswith(f"({published}, {difference})")
    assert gin.text.endswith("[2/3 folds] (87.4)"), "what is incomplete is not compared"
    assert any("no validation set" in note for note in table.notes)
    with pytest.raises(ConfigError, match="accuracies only"):
        table_of(directory, paper=True, metric="auroc")


def test_latex_is_well_formed(sweep):
    text = to_latex(table_of(sweep((), ("model=egin", "model.learn_eps=true"))).text_table)
    assert r"EGIN-$\epsilon$" in text and "ε" not in text and "±" not in text
    rules = re.findall(r"\\(toprule|midrule|bottomrule)", text)
    assert rules == ["toprule", "midrule", "bottomrule"]
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    assert {line.count(" & ") for line in body.splitlines() if line.endswith(r"\\")} == {1}
    assert text.count("{") == text.count("}")
    assert [text.count(rf"\begin{{{name}}}") for name in ("table", "tabular")] == [1, 1]
    assert re.search(r"(?<!\\)[%_]", text) is None


def test_ranks_agree_with_the_table_and_skip_incomplete_datasets(sweep):
    jobs = [(), ("model=gin",), WIDE]
    directory = sweep(*jobs * 3)
    for job, name in zip((3, 4, 5, 6, 7, 8), ("b", "b", "b", "c", "c", "c"), strict=True):
        as_dataset(directory / f"{job}_job", name)
    table = table_of(directory)
    ranks = rank_table(table)
    assert ranks.notes[0].startswith("Over bonds, b, c, where every row is complete. Friedman test: p = 0.")
    found = {name: (float(rank), int(won)) for name, rank, won in ranks.lines[1:]}
    means = [table.cells[row, "bonds"].score.mean for row in table.pivot.rows]
    places = [1 + sum(other > mean for other in means) for mean in means]
    bold = [sum(table.cells[row, column].best for column in "bc") for row in table.pivot.rows]
    won = [number // 2 * 3 for number in bold]  # the same runs three times
    labels = [table.pivot.row_label(row) for row in table.pivot.rows]
    assert found == dict(zip(labels, zip(places, won, strict=True), strict=True))
    assert list(found.values()) == sorted(found.values(), key=lambda pair: pair[0])
    (directory / "4_job" / "fold_00" / "last.pt").unlink()
    assert rank_table(table_of(directory)).notes[0].startswith("Over bonds, c, ")


def test_all_files_are_written(sweep, tmp_path):
    report = make_report(find_runs([sweep((), ("model=gin",))]))
    output = io.StringIO()
    write_report(report, tmp_path / "out", Console(file=output))
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"table.md", "table.csv", "table.tex", "table.png", "table.svg"}
    assert all(name in output.getvalue() for name in (*names, str(tmp_path / "out")))
    assert (tmp_path / "out" / "table.png").read_bytes().startswith(b"\x89PNG")


def test_scores_on_other_test_sets_are_not_ranked(sweep):
    """A setting that changes the test sets is no hyper-parameter: nothing is best or selected across its values."""
    table = table_of(sweep((), ("cv.k=4",)))
    assert not any(cell.best for cell in table.cells.values()) and not table.selections
    assert "Test sets differ by k: scores are compared within the same test sets only." in table.notes


def test_scores_on_the_same_test_sets_are_ranked_beside_others(sweep):
    runs = (), WIDE, ("cv.k=4",), (*WIDE, "cv.k=4")
    table = table_of(sweep(*runs))
    best = [cell.group.value("cv.k") for cell in table.cells.values() if cell.best]
    assert sorted(set(best)) == ["3", "4"]
    assert [re.search(r"k \d", line).group() for line in table.selections] == ["k 3", "k 4"]


def test_other_labels_are_other_test_sets(sweep):
    directory = sweep((), WIDE)
    assert table_of(directory).selections
    path = directory / "1_job" / "folds.json"
    path.write_text(re.sub(r'"labels_hash": "\w+"', '"labels_hash": "other"', path.read_text()))
    assert not table_of(directory).selections
