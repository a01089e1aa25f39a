"""One model on all graphs, as a cross-validation settled it."""

import itertools
import json
import shutil
import statistics
import sys

import pytest

from egin_dgl.data import bonds
from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.calibration import pooled_temperature
from egin_dgl.evaluation.history import best_validation_record, selected_record
from egin_dgl.inference.trained_run import load_run
from egin_dgl.runs.reader import find_runs, read_run
from egin_dgl.runs.run_dir import RunDir


def finish(run_here, folder, *options):
    return run_here(folder / "refit", "cv=refit", f"run={folder}", *options)


def test_it_takes_settings_epochs_and_temperature_of_the_folds(trained, run_here):
    folder = trained("model.hidden_dim=8", "seed=5")
    before = read_run(folder)
    results = list(before.results.values())
    summary = finish(run_here, folder)
    epochs = round(statistics.median(selected_record(result.history).epoch for result in results))
    assert summary["refit"]["epochs"] == epochs
    assert summary["refit"]["temperature"] == pooled_temperature(results)
    after = read_run(folder / "refit")
    for group in ("model", "dataset", "optimizer", "scheduler", "ewl", "seed"):
        assert after.settings[group] == before.settings[group]
    assert len(after.results[0].history) == epochs and after.results[0].parameters == results[0].parameters
    assert "Trained on all 60 graphs" in (folder / "refit" / "card.md").read_text()


def test_it_predicts_like_any_other_run(trained, run_here):
    folder = trained("model.hidden_dim=8")
    finish(run_here, folder)
    run, dataset = load_run(folder / "refit"), bonds(graphs=60)
    assert len(run.folds) == 1 and run.calibrated
    answers = run.predict(dataset)
    correct = sum(
        a == dataset.info.class_names[y] for a, y in zip(answers.predicted, dataset.labels, strict=True)
    )
    assert correct / 60 > 0.8  # of graphs it was trained on
    # Again: it is there already.
    first = json.loads((folder / "refit" / "summary.json").read_text())["seconds"]
    assert finish(run_here, folder)["seconds"] == first


def test_of_a_nested_run_the_settings_best_in_the_mean_are_taken(trained, run_here):
    grid = {"hidden_dim": (4, 8), "edge_dim": (2, 3)}
    written = ", ".join(f"{name}: [{', '.join(map(str, values))}]" for name, values in grid.items())
    folder = trained("cv=nested", "cv.k=3", f"cv.grid={{model: {{{written}}}}}", "trainer.epochs=4")
    chosen = finish(run_here, folder)["refit"]["chosen"]
    means = {}
    for number, point in enumerate(itertools.product(*grid.values())):
        results = [RunDir(folder).fold(fold).candidate(number).progress() for fold in range(3)]
        means[point] = statistics.fmean(
            best_validation_record(result.history).monitor_score for result in results
        )
    assert not RunDir(folder).fold(0).candidate(len(means)).path.exists()
    point = chosen["model.hidden_dim"], chosen["model.edge_dim"]
    assert means[point] == max(means.values())
    kept = load_run(folder / "refit").run.settings["model"]
    assert (kept["hidden_dim"], kept["edge_dim"]) == point


@pytest.mark.parametrize("kind", ["linear", "precomputed"])
def test_of_a_kernel_the_penalty_best_in_the_mean_is_taken(trained, run_here, kind):
    folder = trained("model=ewl_kernel", f"model.kind={kind}")
    summary = finish(run_here, folder)
    assert summary["refit"]["C"] in (0.01, 0.1, 1, 10, 100, 1000) and summary["refit"]["epochs"] is None
    assert load_run(folder / "refit").predict(bonds(graphs=60)).probabilities.shape == (60, 2)


def test_tables_do_not_count_it(trained, run_here):
    folder = trained("model.hidden_dim=8")
    finish(run_here, folder)
    assert [run.folder for run in find_runs([folder])] == [folder]


def test_what_it_needs_is_told(run_here, trained, tmp_path):
    with pytest.raises(ConfigError, match="cv=refit needs run=FOLDER"):
        run_here(tmp_path / "a", "cv=refit")
    with pytest.raises(ConfigError, match="is not the folder of a run"):
        run_here(tmp_path / "b", "cv=refit", f"run={tmp_path}")


@pytest.fixture
def theirs(trained, tmp_path):
    """The folder of somebody else's run, as they may have changed its record."""

    def changed(change, *options):
        folder = tmp_path / "theirs"
        shutil.copytree(trained(*options), folder, ignore=shutil.ignore_patterns("refit"))
        record = json.loads((folder / "run.json").read_text())
        change(record["settings"])
        (folder / "run.json").write_text(json.dumps(record))
        return folder

    return changed


def test_of_a_run_made_before_there_were_averages_and_windows_it_takes_none(theirs, run_here):
    since = {"monitor_window": 1, "ema_decay": None, "bn_statistics": "running", "warmup_epochs": 0}

    def as_it_was(settings):
        for name in since:
            del settings["trainer"][name]

    folder = theirs(as_it_was, "model.hidden_dim=8")
    finish(run_here, folder)
    assert since.items() <= read_run(folder / "refit").settings["trainer"].items()


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("model", "_target_", "theirs.touch"),
        ("model", "readout", {"_target_": "theirs.touch"}),
        ("ewl", "_target_", "theirs.touch"),
        ("trainer", "batch_size", "${oc.env:HOME}"),
        ("dataset", "url", "http://127.0.0.1:9"),
        (None, "seed", "${oc.env:HOME}"),
    ],
)
def test_a_folder_of_somebody_else_calls_nothing(theirs, run_here, own_module, group, name, value):
    def change(settings):
        (settings[group] if group else settings)[name] = value

    with pytest.raises(ConfigError, match="folder's word|that a folder names"):
        finish(run_here, theirs(change, "model.hidden_dim=8"))
    assert not own_module.exists()


def test_a_grid_of_somebody_else_calls_nothing_unless_it_is_trusted(theirs, run_here, own_module):
    """The points of a grid are built, and a class can be one of them."""

    def change(settings):
        settings["cv"]["grid"] = {"model": {"_target_": ["theirs.touch"]}}

    grid = "cv.grid={model: {hidden_dim: [4]}}"
    folder = theirs(change, "cv=nested", "cv.k=3", grid, "trainer.epochs=1")
    with pytest.raises(ConfigError, match="cv.grid.model has _target_.*add trust=true"):
        finish(run_here, folder)
    assert not own_module.exists()
    with pytest.raises(
        ConfigError, match="must make a torch.nn.Module, it made a NoneType"
    ):  # it is called now
        finish(run_here, folder, "trust=true")
    assert own_module.exists()


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """What exists once the module `theirs` has been imported."""
    canary = tmp_path / "canary"
    (tmp_path / "code").mkdir()
    text = f"from pathlib import Path\nPath({str(canary)!r}).touch()\ndef touch(info, **options): pass\n"
    (tmp_path / "code" / "theirs.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "code")
    yield canary
    sys.modules.pop("theirs", None)


def test_a_run_is_named_for_the_final_model_alone(trained, run_here, tmp_path):
    with pytest.raises(ConfigError, match="run=FOLDER is for cv=refit"):
        run_here(tmp_path / "a", "dataset=bonds", "dataset.graphs=8", f"run={tmp_path}")
