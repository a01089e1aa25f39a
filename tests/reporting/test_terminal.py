"""The table, the card and the progress of one run, on terminals of any width."""

import io
import math
import re

import pytest
from rich.console import Console

from egin_dgl.evaluation.history import EpochRecord
from egin_dgl.reporting.one_run.card import score_lines
from egin_dgl.reporting.one_run.progress import FoldProgress
from egin_dgl.reporting.one_run.terminal import summary_table

PROTOCOLS = ("selected", "common_epoch", "best_per_fold", "last", "last_20")


def summary_with(folds, **more):
    protocol = {"mean": 1.0, "std": 0.123, "interval": [0.8, 1.0] if folds > 1 else None, "epoch": 100}
    protocol["per_fold"] = [1.0] * folds
    protocols = {
        name: protocol | {"optimistic": name in ("common_epoch", "best_per_fold"), "averaged": 20}
        for name in PROTOCOLS
    }
    base = {"model": "EGIN-E-ε", "dataset": "MUTAG", "folds": folds, "k": 10, "headline": "selected"}
    return (
        base | {"protocols": protocols, "baseline": 0.665, "task": "multiclass", "metric": "accuracy"} | more
    )


def shown(summary, width):
    console = Console(width=width, file=io.StringIO())
    console.print(summary_table(summary, width))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 79, 80, 120])
def test_summary_table_fits_any_width(width):
    text = shown(summary_with(10), width)
    assert "…" not in text and max(map(len, text.splitlines())) <= width
    assert all(
        re.search(rf"^ *{name} +100\.0 ± 12\.3 +80\.0 – 100\.0", text, re.MULTILINE) for name in PROTOCOLS
    )


def test_one_split_has_no_standard_deviation():
    text = shown(summary_with(1, holdout=True), 80)
    assert "±" not in text and "95 % CI" not in text and "on one split" in text
    assert re.search(r"selected +100\.0 +100 +validation", text)
    assert "over 1 fold of 10" in shown(summary_with(1), 80)


@pytest.mark.parametrize(("averaged", "text"), [(20, "20"), ([4, 18, 10], "4 to 18")], ids=str)
def test_terminal_and_card_show_how_many_epochs_were_averaged(averaged, text):
    summary = summary_with(3, metrics={"accuracy": {"mean": 1.0}})
    summary["protocols"]["last_20"]["averaged"] = averaged
    assert re.search(rf"last_20 .*fixed: mean of {text} *$", shown(summary, 120), re.MULTILINE)
    assert any(line.endswith(f"| fixed: mean of {text} |") for line in score_lines(summary))


@pytest.mark.parametrize("headline", ["selected", "common_epoch"])  # with and without a validation set
def test_a_model_that_is_fitted_once_has_one_row_without_an_epoch(headline):
    summary = summary_with(3, metrics={"accuracy": {"mean": 1.0}}, headline=headline)
    summary["protocols"] |= {"last": None, "last_20": None}
    text = shown(summary, 80)
    assert re.search(rf"{headline} +100\.0 ± 12\.3 +80\.0 – 100\.0 *$", text, re.MULTILINE)
    assert text.count("±") == 2 and "chosen on" not in text and "optimistic" not in text
    rows = [line for line in score_lines(summary) if "±" in line]
    assert len(rows) == 1 and rows[0].endswith("| fitted once |")


def record(epoch, seconds=2.0):
    numbers = dict.fromkeys(("train_loss", "train_score", "val_loss", "val_score"), 0.5)
    rest = dict.fromkeys(("test_loss", "test_score", "lr", "grad_norm"), math.nan)
    return EpochRecord(epoch=epoch, seconds=seconds, **numbers, **rest)


def test_progress_shows_the_time_left_of_the_run():
    console = Console(width=200, file=io.StringIO())
    progress = FoldProgress({0: 0, 1: 0, 2: 0}, 4, console)
    progress(0, record(1, seconds=10.0))  # one of twelve epochs
    assert console.file.getvalue() == "fold 0  epoch 1/4  loss 0.500  val  50.0 %  110 s left\n"


def test_epochs_before_a_resume_do_not_count_for_the_speed():
    console = Console(width=200, file=io.StringIO())
    progress = FoldProgress({0: 4, 1: 2}, 4, console)
    progress(1, record(3, seconds=10.0))
    assert "  10 s left" in console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80])
def test_progress_bars_fit_the_terminal(width):
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    with FoldProgress({fold: 0 for fold in range(10)}, 100, console) as progress:
        for fold in range(10):
            progress(fold, record(100))
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue()).splitlines()
    assert "…" not in "".join(lines)
    assert any(re.match(r"fold 9.*100/100.*loss 0\.500 +val +50\.0 % +0:00:00", line) for line in lines)
    assert any(re.match(r"run .*1000/1000.* 0:00:00", line) for line in lines)
