"""Kernels and colour features in the app: the same folds, protocols and tables as a network."""

import csv
import json
import re

import numpy as np
import pytest
from running import SMALL
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from egin_dgl.cli.app import print_summary
from egin_dgl.data import load_tu
from egin_dgl.data.splits import load_folds
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.evaluation.metrics import MULTICLASS
from egin_dgl.ewl import duplicate_groups
from egin_dgl.reporting.many_runs.report import to_csv
from egin_dgl.reporting.many_runs.table import result_tables
from egin_dgl.reporting.one_run.figures import curves_figure
from egin_dgl.reporting.one_run.terminal import metrics_line
from egin_dgl.runs.fold_dir import read_history
from egin_dgl.runs.reader import find_runs

BONDS = ["dataset=bonds", "dataset.graphs=80", "cv.k=4"]


def test_the_e_wl_kernel_learns_from_edges_and_the_1_wl_kernel_does_not(run_here, tmp_path):
    edged = run_here(tmp_path / "e", *BONDS, "model=ewl_kernel", "model.depth=2")
    plain = run_here(tmp_path / "p", *BONDS, "model=wl_kernel", "model.depth=2")
    assert edged["model"] == "E-WL kernel" and plain["model"] == "1-WL kernel"
    assert edged["protocols"]["selected"]["mean"] == 1.0
    assert plain["protocols"]["selected"]["mean"] <= 0.625  # the bound for predictions by structure alone
    for summary in (edged, plain):
        assert summary["protocols"]["selected"]["per_fold"] == summary["metrics"]["accuracy"]["per_fold"]
    assert (tmp_path / "e" / "folds.json").read_text() == (tmp_path / "p" / "folds.json").read_text()


@pytest.mark.parametrize("kind", ["precomputed"])
def test_each_penalty_is_a_row_of_the_history(run_here, tmp_path, kind):
    options = [
        "model=ewl_kernel",
        f"model.kind={kind}",
        "model.penalties=[10,0.1]",
        "dataset=mutag",
        "cv=holdout",
    ]
    summary = run_here(tmp_path, *options)
    history = read_history(tmp_path / "fold_00" / "history.csv")
    assert [record.C for record in history] == [0.1, 10]
    assert history[0].train_score <= history[1].train_score == 1.0  # 0.1 comes first, 10 fits all
    assert summary["protocols"]["selected"]["mean"] > summary["baseline"]
    assert (tmp_path / "curves.png").exists() and (tmp_path / "confusion.png").exists()
    again = run_here(tmp_path, *options)
    assert again["protocols"] == summary["protocols"]


@pytest.fixture(scope="module")
def kernel_run(run_here, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernel")
    return folder, run_here(folder, *BONDS, "model=ewl_kernel", "model.depth=2", "model.penalties=[0.01,1]")


def test_reports_on_a_kernel_have_penalties_instead_of_epochs(kernel_run, capsys):
    folder, summary = kernel_run
    print_summary(summary, folder)
    printed = capsys.readouterr().out
    assert re.search(r" C +C chosen on", printed) and "epoch chosen" not in printed
    assert "last" not in re.findall(r"^ +(\w+) ", printed, re.MULTILINE) and "last_20" not in printed
    protocols = summary["protocols"]
    assert protocols["last"] is None and protocols["last_20"] is None
    for name in ("selected", "common_epoch", "best_per_fold"):
        value = protocols[name]["C"]
        assert set(value if isinstance(value, list) else [value]) <= {0.01, 1}
    histories = [read_history(path) for path in sorted(folder.glob("fold_*/history.csv"))]
    for axes in curves_figure(histories, "a kernel", {}).axes:
        assert (axes.get_xlabel(), axes.get_xscale()) == ("C", "log")
        assert list(axes.lines[0].get_xdata()) == [0.01, 1]
    card = (folder / "card.md").read_text()
    assert "| C chosen on |" in card and "epoch chosen" not in card and "last" not in card
    (table,) = result_tables(find_runs([folder]))
    assert table.notes[0] == "selected: C is chosen per fold on the validation set."
    assert {row["protocol"] for row in csv.DictReader(to_csv([table]).splitlines())} == {
        "selected",
        "common_epoch",
        "best_per_fold",
    }


def test_penalties_chosen_per_fold_are_counted():
    protocol = {"C": [1.0, 10.0, 1.0], "optimistic": False}
    metrics = {"mcc": {"mean": 0.5}, "log_loss": {"mean": None}}
    summary = {
        "headline": "selected",
        "protocols": {"selected": protocol},
        "metrics": metrics,
        "folds": 3,
        "metric": "accuracy",
    }
    lines = metrics_line(summary).splitlines()
    assert lines == [
        "selected, other metrics: mcc 0.500",
        "chosen in 2 of 3 folds: C=1",
        "chosen in 1 of 3 folds: C=10",
    ]


def test_decision_values_have_no_losses(kernel_run, run_here, tmp_path, capsys):
    """They are null and not shown; a network on the same folds has them."""
    folder, summary = kernel_run
    assert set(summary["metrics"]) == set(MULTICLASS)
    undefined = {name for name, value in summary["metrics"].items() if value["mean"] is None}
    losses = {name for name, metric in MULTICLASS.items() if metric.needs_probabilities}
    assert undefined == losses
    print_summary(summary, folder)
    assert not any(name in capsys.readouterr().out for name in losses)
    events = EventAccumulator(str(folder)).Reload().Tags()["scalars"]
    assert "final/auroc" in events and not {f"final/{name}" for name in losses} & set(events)
    assert not any(tag.startswith("accuracy (last)") for tag in events)
    steps = EventAccumulator(str(folder)).Reload().Scalars("kernel/C")
    assert [round(step.value, 6) for step in steps] == [0.01, 1]
    network = ["trainer.epochs=1", "model.num_layers=2", "model.hidden_dim=8"]
    run_here(tmp_path, *BONDS, *network)
    (table,) = result_tables(find_runs([folder, tmp_path]), metric="brier")
    texts = {cell.group.model: cell.text for cell in table.cells.values()}
    assert texts["E-WL kernel"] == "–" and re.fullmatch(r"\d\.\d{3} ± \d\.\d{3}", texts["EGIN-E"])
    assert any("decision values of a kernel machine are no probabilities" in note for note in table.notes)
    (table,) = result_tables(find_runs([folder, tmp_path]), protocol="last_20")
    assert table.notes[0] == "last_20: the epoch is chosen in advance: mean of the last 1."
    assert {cell.group.model for cell in table.cells.values() if cell.score} == {"EGIN-E"}


def test_invalid_options_are_errors_before_any_fold(run_here, tmp_path):
    with pytest.raises(ConfigError, match="kind must be 'linear' or 'precomputed', got 'rbf'"):
        run_here(tmp_path, *BONDS, "model=ewl_kernel", "model.kind=rbf")
    with pytest.raises(ConfigError, match="penalties must "):
        run_here(tmp_path, *BONDS, "model=ewl_kernel", "model.penalties=[0]")
    with pytest.raises(ConfigError, match="use ewl=none"):
        run_here(tmp_path, *BONDS, "model=ewl_kernel", "ewl=colors")
    assert not list(tmp_path.glob("fold_*"))


@pytest.mark.parametrize("encoding", ["onehot", "embedding", "hash"])
def test_colours_are_features_and_saved_with_the_model(run_here, tmp_path, encoding):
    from safetensors import safe_open

    run_here(
        tmp_path, *SMALL, "model=egin", "ewl=colors", f"ewl.encoding={encoding}", "ewl.depth=1", "cv.fold=0"
    )
    with safe_open(tmp_path / "fold_00" / "best.safetensors", "pt") as file:
        saved = json.loads(file.metadata()["egin_dgl"])["transforms"]["FittedColors"]
        shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    assert saved["settings"]["encoding"] == encoding and saved["settings"]["depth"] == 1
    assert ("embedding.weight" in shapes) == (encoding == "embedding")


def test_group_duplicates_keeps_duplicates_in_one_fold(run_here, tmp_path):
    try:
        data = load_tu("PTC_MR", url=None)
    except DataError:
        pytest.skip("PTC_MR, which has duplicates, is not here: set EGIN_DATA_ROOT to a folder that has it")
    groups = duplicate_groups(data)
    assert len(set(groups)) < len(groups)
    run_here(
        tmp_path,
        "dataset=ptc_mr",
        "cv.group_duplicates=true",
        "model=wl_kernel",
        "model.depth=1",
        "cv.fold=0",
    )
    folds = load_folds(tmp_path / "folds.json", data.labels.numpy(), "PTC_MR").indices
    assert sum(len(set(groups[part])) for part in folds) == len(set(groups))
    sizes = [len(part) for part in folds]
    assert max(sizes) - min(sizes) <= 1 and np.sum(sizes) == 344
