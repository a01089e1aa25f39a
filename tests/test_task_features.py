"""Every feature with every task, the cells of the table in docs/tasks.md, on 45 small graphs and for two epochs."""

import csv
import json
import re
import shutil

import networkx as nx
import numpy as np
import pytest
import running
from PIL import Image
from rich.console import Console
from running import ROOT, same_numbers
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from egin_dgl.api import EGINClassifier, EGINRegressor, load_run
from egin_dgl.cli.refit import plan_refit, train_refit
from egin_dgl.evaluation.protocols import PROTOCOLS
from egin_dgl.reporting.many_runs.report import make_report, write_report
from egin_dgl.runs.reader import find_runs
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.tasks import TASKS

TARGETS = {"multiclass": ["kind"], "multilabel": ["even", "long"], "regression": ["size", "charge"]}
TINY = ["trainer.epochs=2", "cv.k=3", "model.num_layers=1", "model.hidden_dim=4", "trainer.monitor_window=1"]
pytestmark = pytest.mark.usefixtures("numbers")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Rings with bonds of two kinds; classes, labels and values depend on size and bonds, and some are missing."""
    directory, random = tmp_path_factory.mktemp("rings"), np.random.default_rng(0)
    graphs, nodes, edges = [], [], []
    for graph in range(45):
        size, double = int(random.integers(3, 8)), int(random.integers(0, 3))
        unknown = graph % 9 == 0
        kind = "cab"[double]
        graphs.append(
            [graph, kind, size % 2, "" if unknown else int(size > 5), size, "" if unknown else 0.5 * double]
        )
        nodes += [[graph, node, "CN"[node % 2]] for node in range(size)]
        edges += [[graph, i, (i + 1) % size, "double" if i < double else "single"] for i in range(size)]
    headers = {
        "graphs": ["id", "kind", "even", "long", "size", "charge"],
        "nodes": ["graph", "node", "atom"],
        "edges": ["graph", "source", "target", "bond"],
    }
    for (name, header), rows in zip(headers.items(), (graphs, nodes, edges), strict=True):
        with open(directory / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    return directory


@pytest.fixture(scope="module")
def rings(tables):
    """The same graphs as networkx graphs."""
    with open(tables / "edges.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    graphs = [nx.Graph() for _ in range(45)]
    for row in rows:
        graphs[int(row["graph"])].add_edge(int(row["source"]), int(row["target"]), bond=row["bond"])
    for graph in graphs:
        nx.set_node_attributes(graph, {node: "CN"[node % 2] for node in graph}, "atom")
    return graphs


@pytest.fixture(scope="module", params=list(TASKS))
def task(request):
    return request.param


@pytest.fixture(scope="module")
def options(tables, task, tmp_path_factory):
    """The options of a run of this task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EGIN_CACHE", str(tmp_path_factory.mktemp("cache")))
        target = f"dataset.target=[{','.join(TARGETS[task])}]"
        yield ["dataset=csv", f"dataset.path={tables}", target, f"task={task}", *TINY]


@pytest.fixture(scope="module")
def run(options, tmp_path_factory):
    """A finished run with pictures."""
    directory = tmp_path_factory.mktemp("run") / "run"
    running.train(running.run_spec(*options), directory)
    return directory


def summary_of(directory):
    return json.loads((directory / "summary.json").read_text())


def test_protocols(run, task):
    summary, metric = summary_of(run), TASKS[task].main()
    assert (summary["task"], summary["metric"]) == (task, metric.name)
    assert all(len(summary["protocols"][name]["per_fold"]) == 3 for name in PROTOCOLS)
    gains = {name: metric.gain(summary["protocols"][name]["mean"]) for name in PROTOCOLS}
    assert gains["best_per_fold"] >= gains["common_epoch"] >= gains["last"]
    assert metric.gain(summary["baseline"]) <= 1


def test_nested(run_here, options, tmp_path):
    summary = run_here(
        tmp_path, *options, "cv=nested", "cv.k=3", "cv.fold=0", "cv.grid={model: {hidden_dim: [2, 4]}}"
    )
    assert summary["chosen"][0]["model.hidden_dim"] in (2, 4)


def test_refit(run, task):
    summary = train_refit(plan_refit(RunDir(run)), run / "refit")
    assert summary["task"] == task and summary["refit"]["graphs"] == 45
    assert "Trained on all 45 graphs" in (run / "refit" / "card.md").read_text()


def test_holdout(run_here, options, tmp_path):
    assert run_here(tmp_path, *options, "cv=holdout", "cv.k=3")["holdout"]


def test_repeats(run_here, options, tmp_path):
    assert run_here(tmp_path, *options, "cv.repeats=2", "cv.fold=[0,4]")["fold_numbers"] == [0, 4]


def test_resume(run, run_here, options, tmp_path):
    resumed = tmp_path / "resumed"
    shutil.copytree(run, resumed, ignore=shutil.ignore_patterns("fold_01", "summary.json", "refit"))
    run_here(resumed, *options)
    same_numbers(run, resumed)


def test_monitored_metric_and_patience(run_here, options, tmp_path, task):
    """The last metric of each task is another than its main one."""
    name = list(TASKS[task].metrics)[-1]
    more = ["cv.fold=0", "trainer.epochs=3", "trainer.patience=1", f"trainer.monitor={name}"]
    summary = run_here(tmp_path, *options, *more)
    assert summary["metric"] == name and summary["validation_score"] is not None
    assert f"test_{name}" in (tmp_path / "fold_00" / "history.csv").read_text().splitlines()[0]


def test_tables(run, run_here, options, task, tmp_path):
    run_here(tmp_path / "gin", *options, "model=gin")
    report = make_report(find_runs([run, tmp_path]), compared=("egin_e", "gin"))
    (table,) = report.tables
    assert table.metric == TASKS[task].main().name and len(table.cells) == 2
    assert any("corrected resampled t-test" in text.title for text in report.text_tables)
    write_report(report, tmp_path / "out", Console(quiet=True))
    assert len(list((tmp_path / "out").iterdir())) == 5


def test_tensorboard_has_curves_and_pictures(run, task):
    events = EventAccumulator(str(run)).Reload()
    assert f"{TASKS[task].main().name}/validation" in events.Tags()["scalars"]
    assert set(events.Tags()["images"]) == {"curves", *TASKS[task].pictures}


def test_pictures(run, task):
    for name in ("curves", *TASKS[task].pictures):
        assert "<svg" in (run / f"{name}.svg").read_text()
        with Image.open(run / f"{name}.png") as picture:
            shades = picture.convert("L").getcolors()
        assert len(shades) > 50  # not an empty page


def test_card(run, task):
    card = (run / "card.md").read_text()
    assert f"test {TASKS[task].main().name}" in card and TASKS[task].baseline in card
    for name in TARGETS[task] if len(TARGETS[task]) > 1 else ():
        assert re.search(rf"^\| {name} \|", card, re.MULTILINE)


def test_predictions_of_test_sets(run, task):
    with open(run / "predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 45 and {row["calibrated"] for row in rows} == {
        str(TASKS[task].has_probabilities).lower()
    }
    missing = [row for row in rows if row.get("label_long") == "" or row.get("label_charge") == ""]
    assert len(missing) == (0 if task == "multiclass" else 5)


def test_predict_with_intervals_or_sets(run, tables, task):
    frame = load_run(run).predict(tables)
    assert len(frame) == 45
    assert set(TASKS[task].columns(load_run(run).info)[1]) <= set(frame)
    assert any(name.startswith(("low", "set")) for name in frame), list(frame)


def test_embed_and_explain(run, rings):
    trained = load_run(run)
    assert trained.embed(rings[:3]).shape[0] == 3
    assert len(trained.explain(rings[:2], trained.info.output_names[-1])) >= 2


def test_estimator(rings, task):
    sizes = np.array([len(graph) for graph in rings], dtype=float)
    missing = np.where(np.arange(45) % 9 == 0, np.nan, sizes > 5)
    y = {
        "multiclass": np.where(sizes > 5, "long", "short"),
        "multilabel": np.stack([sizes % 2, missing], axis=1),
        "regression": np.stack([sizes, missing * 0.5], axis=1),
    }[task]
    estimator = EGINRegressor if task == "regression" else EGINClassifier
    fitted = estimator(hidden_dim=4, num_layers=1, epochs=2).fit(rings, y)
    assert fitted.predict(rings).shape == y.shape and fitted.transform(rings).shape[0] == 45


@pytest.mark.slow
def test_sweep_and_search(command, options, task, tmp_path):
    pytest.importorskip("optuna", reason="a search needs the extra `optuna`")
    search = [
        "hydra/sweeper=optuna",
        "hydra.sweeper.n_trials=2",
        "optimizer.lr=choice(0.01,0.1)",
        "cv.fold=0",
    ]
    done = command("-m", *options, *search, f"hydra.sweep.dir={tmp_path}", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    import optuna

    (study,) = optuna.get_all_study_summaries(f"sqlite:///{tmp_path}/study.db")
    scores = [summary_of(path.parent)["validation_score"] for path in tmp_path.glob("*/summary.json")]
    metric = TASKS[task].main()
    assert len(scores) == 2 and study.best_trial.value == pytest.approx(metric.gain(metric.best(scores)))
    assert ("the search minimizes rmse" in done.stderr) == metric.is_loss


@pytest.mark.slow
def test_reproducible(command, options, tmp_path):
    for number in (1, 2):
        done = command(
            *options, "cv.fold=0", "reproducible=any", f"hydra.run.dir={tmp_path}/{number}", cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
    same_numbers(tmp_path / "1", tmp_path / "2")
