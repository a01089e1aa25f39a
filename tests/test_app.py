"""The app as people use it: what a run shows and leaves behind."""

import json
import os
import pty
import re

import pytest
from running import SMALL, same_numbers, settings_of

from egin_dgl.cli.app import ema_hint
from egin_dgl.errors import ConfigError
from egin_dgl.evaluation.metrics import MULTICLASS
from egin_dgl.reporting.one_run.publish import final_metrics


@pytest.fixture(scope="module")
def finished(command, tmp_path_factory):
    """A small run through the command line."""
    folder = tmp_path_factory.mktemp("run")
    done = command(*SMALL, f"hydra.run.dir={folder}")
    assert done.returncode == 0, done.stderr
    return folder, done


def test_a_run_is_a_folder(finished):
    folder, _ = finished
    names = {path.name for path in folder.iterdir()}
    assert {
        "summary.json",
        "folds.json",
        "run.json",
        "curves.png",
        "confusion.png",
        ".hydra",
        "fold_00",
    } <= names
    assert {path.name for path in (folder / "fold_02").iterdir()} >= {
        "history.csv",
        "best.safetensors",
        "last.pt",
    }
    assert not list(folder.rglob("*.tmp"))
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["model"] == "EGIN-E" and summary["dataset"] == "bonds" and summary["folds"] == 3
    assert summary["headline"] == "selected"
    assert set(summary["protocols"]) == {"selected", "common_epoch", "best_per_fold", "last", "last_20"}
    assert len(summary["protocols"]["selected"]["per_fold"]) == 3
    assert set(summary["metrics"]) == set(MULTICLASS) >= {"log_loss", "brier", "ece"}
    assert all(metric["mean"] is not None for metric in summary["metrics"].values())
    assert summary["protocols"]["last_20"]["averaged"] == 3
    assert summary["baseline"] == 0.5
    run = json.loads((folder / "run.json").read_text())
    assert {"python", "torch", "dgl"} <= set(run["versions"])
    assert run["settings"]["model"]["hidden_dim"] == 8 and len(run["data_sha256"]) == 64
    for picture in ("curves.png", "confusion.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def test_the_terminal_shows_the_table_the_majority_and_the_folder(finished):
    folder, done = finished
    for word in (
        "selected",
        "common_epoch",
        "optimistic",
        "best_per_fold",
        "last_20",
        "majority class",
        "50.0",
        "mean of 3",
        "log_loss",
        "brier",
        "ece",
    ):
        assert word in done.stdout
    assert str(folder) in done.stdout
    assert re.search(r"fold 0  epoch 3/3  loss \d+\.\d+  val +\d+\.\d %  \d+ s left", done.stderr)


def test_the_number_of_workers_does_not_change_a_number(run_here, finished, tmp_path):
    folder, _ = finished
    run_here(tmp_path, *SMALL)
    same_numbers(folder, tmp_path)


def test_a_terminal_gets_live_bars(start, tmp_path):
    """Through a pseudo-terminal, as a person would see it."""
    main, terminal = pty.openpty()
    process = start(
        *SMALL,
        "cv.fold=1",
        f"hydra.run.dir={tmp_path}",
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "140"},
    )
    os.close(terminal)
    shown = b""
    try:
        while block := os.read(main, 65536):
            shown += block
    except OSError:  # the other end is closed
        pass
    assert process.wait() == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"fold 1 +━+ 3/3 loss \d+\.\d+ +val +\d+\.\d %", plain)
    assert "1 fold of 3" in plain


def test_a_folder_with_another_run_is_refused(command, finished):
    folder, _ = finished
    done = command(*SMALL, "model.hidden_dim=9", f"hydra.run.dir={folder}")
    assert done.returncode == 1
    assert "holds a run with other settings (model); use a new directory" in done.stderr


def test_folds_of_an_earlier_run_can_be_used_again(run_here, finished, tmp_path):
    folder, _ = finished
    run_here(tmp_path, *SMALL, "seed=5", "trainer.epochs=1", f"cv.folds_file={folder / 'folds.json'}")
    assert (tmp_path / "folds.json").read_text() == (folder / "folds.json").read_text()


def test_one_fold_alone_and_the_paper_protocol(run_here, tmp_path):
    summary = run_here(tmp_path, *SMALL, "cv=paper", "cv.k=3", "cv.fold=2", "trainer.epochs=2")
    assert summary["fold_numbers"] == [2] and summary["k"] == 3
    assert summary["protocols"]["selected"] is None
    assert summary["headline"] == "common_epoch"


def test_scores_selected_on_the_test_set_are_marked(run_here, tmp_path, capsys):
    summary = run_here(tmp_path, *SMALL, "cv=paper", "cv.k=3", "trainer.epochs=2")
    assert summary["protocols"]["selected"] is None
    printed = capsys.readouterr().out
    assert "common_epoch (optimistic), other metrics" in printed
    for name in ("common_epoch", "best_per_fold"):
        assert re.search(rf"{name} .*optimistic", printed)
    metrics = final_metrics(summary)
    assert not [tag for tag in metrics if "optimistic" not in tag and tag.partition("/")[2] in MULTICLASS]
    honest = {tag for tag in metrics if tag.startswith("accuracy (") and "optimistic" not in tag}
    assert honest == {"accuracy (last)/last", "accuracy (last)/last_20"}


def test_repeated_cross_validation_and_an_inner_selection(run_here, tmp_path):
    twice = run_here(tmp_path / "twice", *SMALL, "cv.repeats=2", "trainer.epochs=1")
    assert twice["folds"] == len(twice["protocols"]["selected"]["per_fold"]) == 6
    low, high = twice["protocols"]["last"]["interval"]
    assert low <= twice["protocols"]["last"]["mean"] <= high
    grid = ["cv=nested", "cv.k=3", "cv.grid.model.hidden_dim=[4,8]", "cv.grid.model.edge_dim=[2]"]
    nested = run_here(tmp_path / "nested", *SMALL, *grid, "+cv.grid.optimizer.lr=[0.01]", "trainer.epochs=1")
    assert nested["headline"] == "selected" and nested["protocols"]["best_per_fold"] is not None
    assert {choice["model.hidden_dim"] for choice in nested["chosen"]} <= {4, 8}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["cv.repeats=0"], "cv.repeats must be greater than or equal to 1, got 0"),
        (["cv=nested", "model=wl_kernel"], "cv=nested is for networks"),
        (
            ["cv=nested", "cv.grid.model.hidden_dim=8"],
            "cv.grid.model.hidden_dim must be a valid list, got 8",
        ),
        (["cv=nested", "+cv.grid.dataset.name=[MUTAG]"], "cv.grid can vary options of model, optimizer"),
        (
            ["cv=nested", "+cv.grid.trainer.monitor_window=[1,10]"],
            "cannot vary trainer.monitor_window, which",
        ),
        (["cv=nested", "+cv.grid.trainer.monitor=[accuracy,mcc]"], "cannot vary trainer.monitor, which"),
        (["cv=nested", "model=majority"], "none of the options of cv.grid is one of this model"),
        (["trainer.class_weights=heavy"], "trainer.class_weights must be 'balanced', got 'heavy'"),
        (["trainer.monitor=luck"], "trainer.monitor must be 'auto', 'rmse', 'mae'"),
        (
            ["trainer.monitor=rmse"],
            "trainer.monitor: 'rmse' is no metric of task=multiclass; valid: accuracy",
        ),
    ],
)
def test_what_cannot_be_chosen_is_said(run_here, options, message, tmp_path):
    with pytest.raises(ConfigError, match=re.escape(message)):
        run_here(tmp_path, "dataset=bonds", "dataset.graphs=60", *options)


@pytest.mark.parametrize(
    ("options", "graphs", "hinted"),
    [
        (["trainer.epochs=49"], 180, True),  # 49 × 6 steps
        (["trainer.epochs=50"], 180, False),
        (["trainer.epochs=1"], 10_000, False),
        (["trainer.epochs=1", "trainer.ema_decay=null"], 180, False),
        (["trainer.epochs=1", "model=ewl_kernel"], 180, False),
    ],
)
def test_few_steps_for_the_ema_are_a_hint(options, graphs, hinted):
    assert bool(ema_hint(settings_of(*options), graphs)) == hinted
