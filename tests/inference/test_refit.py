"""Refit: one model on all graphs with the settings that a cross-validation selected."""

import itertools
import json
import shutil
import statistics
import sys

import pytest
from running import edit_settings

from egin_dgl.cli.refit import plan_refit, train_refit
from egin_dgl.data import bonds
from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.calibration import pooled_temperature
from egin_dgl.evaluation.history import best_validation_record, selected_record
from egin_dgl.inference.trained_run import load_run
from egin_dgl.runs.reader import find_runs, read_run
from egin_dgl.runs.run_dir import RunDir


def finish(directory, trust=False):
    return train_refit(plan_refit(RunDir(directory), trust=trust), directory / "refit")


def test_refit_takes_settings_epochs_and_temperature_of_the_folds(trained):
    directory = trained("model.hidden_dim=8", "seed=5")
    before = read_run(directory)
    results = list(before.results.values())
    summary = finish(directory)
    epochs = round(statistics.median(selected_record(result.history).epoch for result in results))
    assert summary["refit"]["epochs"] == epochs
    assert summary["refit"]["temperature"] == pooled_temperature(results)
    after = read_run(directory / "refit")
    for group in ("model", "dataset", "optimizer", "scheduler", "ewl", "seed"):
        assert after.settings[group] == before.settings[group]
    assert len(after.results[0].history) == epochs and after.results[0].parameters == results[0].parameters
    assert "Trained on all 60 graphs" in (directory / "refit" / "card.md").read_text()


def test_refit_predicts_like_any_other_run(trained):
    directory = trained("model.hidden_dim=8")
    finish(directory)
    run, dataset = load_run(directory / "refit"), bonds(graphs=60)
    assert len(run.folds) == 1 and run.calibrated
    assert run.quantiles.tolist() == load_run(directory).quantiles.tolist()
    answers = run.predict(dataset)
    correct = sum(
        a == dataset.info.class_names[y] for a, y in zip(answers["predicted"], dataset.labels, strict=True)
    )
    assert correct / 60 > 0.8  # of graphs it was trained on
    # Again: it is there already.
    first = json.loads((directory / "refit" / "summary.json").read_text())["seconds"]
    assert finish(directory)["seconds"] == first


def test_nested_run_is_refit_with_the_best_mean_settings(trained):
    grid = {"hidden_dim": (4, 8), "edge_dim": (2, 3)}
    written = ", ".join(f"{name}: [{', '.join(map(str, values))}]" for name, values in grid.items())
    directory = trained("cv=nested", "cv.k=3", f"cv.grid={{model: {{{written}}}}}", "trainer.epochs=4")
    chosen = finish(directory)["refit"]["chosen"]
    means = {}
    for number, point in enumerate(itertools.product(*grid.values())):
        results = [RunDir(directory).fold(fold).candidate(number).progress() for fold in range(3)]
        means[point] = statistics.fmean(
            best_validation_record(result.history).monitor_score for result in results
        )
    assert not RunDir(directory).fold(0).candidate(len(means)).path.exists()
    point = chosen["model.hidden_dim"], chosen["model.edge_dim"]
    assert means[point] == max(means.values())
    kept = load_run(directory / "refit").run.settings["model"]
    assert (kept["hidden_dim"], kept["edge_dim"]) == point


@pytest.mark.parametrize("kind", ["linear", "precomputed"])
def test_kernel_is_refit_with_the_best_mean_penalty(trained, kind):
    directory = trained("model=ewl_kernel", f"model.kind={kind}")
    summary = finish(directory)
    assert summary["refit"]["C"] in (0.01, 0.1, 1, 10, 100, 1000) and summary["refit"]["epochs"] is None
    assert load_run(directory / "refit").predict_dataset(bonds(graphs=60)).values.shape == (60, 2)


def test_tables_skip_refits(trained):
    directory = trained("model.hidden_dim=8")
    finish(directory)
    assert [run.folder for run in find_runs([directory])] == [directory]


def test_refit_needs_a_run(run_here, tmp_path):
    with pytest.raises(ConfigError, match="cv=refit needs run=DIR"):
        run_here(tmp_path / "a", "cv=refit")
    with pytest.raises(ConfigError, match="is not the directory of a run"):
        plan_refit(RunDir(tmp_path))


def foreign(directory, path, change):
    """Return a copy of a run with changed settings."""
    shutil.copytree(directory, path, ignore=shutil.ignore_patterns("refit"))
    edit_settings(path, change)
    return path


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A path that exists once the module `theirs` was imported."""
    canary = tmp_path / "canary"
    (tmp_path / "code").mkdir()
    text = f"from pathlib import Path\nPath({str(canary)!r}).touch()\ndef touch(info, **options): pass\n"
    (tmp_path / "code" / "theirs.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "code")
    yield canary
    sys.modules.pop("theirs", None)


def test_run_of_somebody_else_calls_nothing_unless_trusted(trained, own_module, tmp_path):
    def change(settings):
        settings["model"]["_target_"] = "theirs.touch"

    directory = foreign(trained("model.hidden_dim=8"), tmp_path / "theirs", change)
    with pytest.raises(ConfigError, match="add trust=true"):
        finish(directory)
    assert not own_module.exists()
    with pytest.raises(ConfigError, match="must make a torch.nn.Module, it made a NoneType"):
        finish(directory, trust=True)
    assert own_module.exists()


def test_grid_of_somebody_else_calls_nothing(trained, own_module, tmp_path):
    """The points of a grid are built, and a class can be one of them."""

    def change(settings):
        settings["cv"]["grid"] = {"model": {"_target_": ["theirs.touch"]}}

    nested = trained("cv=nested", "cv.k=3", "cv.grid={model: {hidden_dim: [4]}}", "trainer.epochs=1")
    with pytest.raises(ConfigError, match="add trust=true"):
        finish(foreign(nested, tmp_path / "theirs", change))
    assert not own_module.exists()
