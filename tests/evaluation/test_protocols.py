import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egin_dgl.evaluation.history import EpochRecord, average_monitor, exact_mean
from egin_dgl.evaluation.protocols import apply_protocols, headline
from egin_dgl.runs.fold_dir import history_text, read_history


def history(test, val=None, val_loss=None, penalties=None, window=1):
    rows = []
    for i, accuracy in enumerate(test):
        record = EpochRecord(
            epoch=i + 1,
            train_loss=1.0,
            train_score=0.5,
            val_loss=val_loss[i] if val_loss else (1.0 if val else math.nan),
            val_score=val[i] if val else math.nan,
            test_loss=1.0,
            test_score=accuracy,
            lr=math.nan if penalties else 0.01,
            grad_norm=math.nan if penalties else 1.0,
            seconds=0.1,
            C=penalties[i] if penalties else None,
        )
        rows.append(average_monitor(rows, record, window))
    return rows


def test_selected_reads_the_epoch_best_on_validation():
    folds = [history([0.1, 0.9, 0.5], val=[0.3, 0.2, 0.8]), history([0.2, 0.4, 0.6], val=[0.9, 0.1, 0.1])]
    result = apply_protocols(folds)["selected"]
    assert result.per_fold == (0.5, 0.2)
    assert result.epochs == (3, 1)
    assert not result.optimistic


def test_selected_breaks_ties_by_loss_then_by_epoch():
    assert apply_protocols([history([1, 2, 3], val=[0.5] * 3, val_loss=[2, 1, 1])])["selected"].epochs == (2,)


def test_end_of_the_best_window_is_selected():
    """One lucky epoch does not win over three good ones; an epoch without a full window is not selected."""
    val = [0.9, 0.1, 0.9, 0.2, 0.7, 0.7, 0.7, 0.3]
    assert apply_protocols([history([0] * 8, val=val)])["selected"].epochs == (1,)
    assert apply_protocols([history([0] * 8, val=val, window=3)])["selected"].epochs == (7,)
    assert apply_protocols([history([0] * 3, val=[0.9, 0.1, 0.1], window=3)])["selected"].epochs == (3,)


def test_windows_break_ties_by_mean_loss():
    rows = history([0] * 4, val=[0.5] * 4, val_loss=[1, 3, 2, 1], window=2)
    assert apply_protocols([rows])["selected"].epochs == (4,)


@given(st.integers(1, 500), st.lists(st.integers(0, 500), min_size=1, max_size=20), st.randoms())
def test_windows_with_equal_counts_tie_exactly(graphs, counts, random):
    """Equal counts of correct graphs in another order, or moved between epochs, have equal means; one more is better."""
    counts = [min(count, graphs) for count in counts]
    moved = random.sample(counts, len(counts))
    first, second = random.randrange(len(counts)), random.randrange(len(counts))
    if moved[first] > 0 and moved[second] < graphs:
        moved[first] -= 1
        moved[second] += 1
    means = [exact_mean([count / graphs for count in some]) for some in (counts, moved)]
    assert means[0] == means[1] == sum(counts) / (graphs * len(counts))
    assert exact_mean([*(count / graphs for count in counts[1:]), (counts[0] + 1) / graphs]) > means[0]
    assert math.isnan(exact_mean([*means, math.nan])) and exact_mean([math.pi, math.pi]) == math.pi


def test_an_equal_window_of_smaller_loss_is_selected():
    """(0.1 + 0.2 + 0.3) / 3 and 0.6 / 3 differ in floating point."""
    val, loss = [0.1, 0.2, 0.3, 0.1, 0.2], [2, 2, 2, 1, 1]
    for order in (val, [0.2, 0.2, 0.2, 0.2, 0.2], [0.3, 0.0, 0.3, 0.3, 0.0]):
        rows = history([0] * 5, val=order, val_loss=loss, window=3)
        assert apply_protocols([rows])["selected"].epochs == (5,)


def test_selected_does_not_depend_on_test_scores():
    val = [0.3, 0.7, 0.6, 0.7]
    epochs = {
        apply_protocols([history(test, val=val)])["selected"].epochs for test in ([0, 0, 1, 1], [1, 1, 0, 0])
    }
    assert len(epochs) == 1


def test_common_epoch_is_the_peak_of_the_mean_curve():
    result = apply_protocols([history([0.1, 0.9, 0.6]), history([0.2, 0.1, 0.6])])["common_epoch"]
    assert result.epochs == (3, 3)
    assert result.mean == pytest.approx(0.6)
    assert result.optimistic


def test_common_epoch_uses_only_epochs_that_every_fold_reached():
    result = apply_protocols([history([0.1, 0.2, 1.0]), history([0.3, 0.4])])["common_epoch"]
    assert result.epochs == (2, 2)


def test_best_per_fold_bounds_every_other_protocol():
    folds = [history([0.1, 0.9, 0.5], val=[0.3, 0.2, 0.8]), history([0.2, 0.4, 0.6], val=[0.9, 0.1, 0.1])]
    results = apply_protocols(folds)
    assert results["best_per_fold"].mean == pytest.approx(0.75)
    assert all(result.mean <= results["best_per_fold"].mean for result in results.values())


def test_last_and_last_20():
    curve = [0.0] * 10 + [0.5] * 10 + [1.0] * 10
    results = apply_protocols([history(curve)])
    assert results["last"].per_fold == (1.0,)
    assert results["last_20"].per_fold == (0.75,)


def test_last_20_records_the_number_of_epochs():
    short, long = history([0.2, 0.4]), history([0.5] * 30)
    assert apply_protocols([short])["last_20"].to_dict(0.1)["averaged"] == 2
    assert apply_protocols([long, long])["last_20"].to_dict(0.1)["averaged"] == 20
    mixed = apply_protocols([short, long])["last_20"].to_dict(0.1)
    assert mixed["averaged"] == [2, 20] and mixed["per_fold"] == pytest.approx([0.3, 0.5])
    assert all(
        "averaged" not in apply_protocols([long])[name].to_dict(0.1) for name in ("last", "common_epoch")
    )


def test_kernel_machine_has_penalties_and_no_last_epoch():
    folds = [
        history([0.5, 0.9, 0.1], val=[0.1, 0.2, 0.3], penalties=[0.1, 1, 10]),
        history([0.5, 0.9, 0.1], val=[0.3, 0.2, 0.1], penalties=[0.1, 1, 10]),
    ]
    results = apply_protocols(folds)
    assert results["last"] is None and results["last_20"] is None
    chosen = {name: results[name].to_dict(0.1) for name in ("selected", "common_epoch", "best_per_fold")}
    assert {name: record["C"] for name, record in chosen.items()} == {
        "selected": [10, 0.1],
        "common_epoch": 1,
        "best_per_fold": 1,
    }
    assert not any("epoch" in record for record in chosen.values())


def test_std_is_over_folds_with_ddof_0():
    result = apply_protocols([history([0.4]), history([0.6])])["last"]
    assert result.std == pytest.approx(0.1)


def test_headline_without_validation_is_common_epoch():
    results = apply_protocols([history([0.5])])
    assert results["selected"] is None
    assert headline(results) == "common_epoch"
    assert headline(apply_protocols([history([0.5], val=[0.5])])) == "selected"


def test_history_file_round_trip_is_exact(tmp_path):
    rows = history([1 / 3, 2 / 7], val=[0.1 + 0.2, 1.0], window=2) + history([0.3])
    (tmp_path / "history.csv").write_text(history_text(rows))
    assert repr(read_history(tmp_path / "history.csv")) == repr(rows)
    assert "C" not in (tmp_path / "history.csv").read_text().splitlines()[0].split(",")
    kernel = history([0.3, 0.4], val=[0.1, 0.2], penalties=[0.01, 1000.0])
    (tmp_path / "kernel.csv").write_text(history_text(kernel))
    assert repr(read_history(tmp_path / "kernel.csv")) == repr(kernel)
