"""Logs as a TensorBoard server on loopback shows them."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from running import SMALL


@pytest.fixture(scope="module")
def ask(command, run_here, tmp_path_factory):
    """Queries a server that shows a sweep of two jobs and a run that keeps the curves of its folds."""
    folder = tmp_path_factory.mktemp("sweep")
    done = command(
        "-m", *SMALL[:-1], "model.learn_eps=true", "model.hidden_dim=4,8", f"hydra.sweep.dir={folder}"
    )
    assert done.returncode == 0, done.stderr
    run_here(folder / KEPT, *SMALL, "cv.fold=[0,2]", "fold_curves=true")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        folder,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:

        def get(path, body=None):
            request = urllib.request.Request(f"http://127.0.0.1:{port}/data/{path}")
            if body is not None:
                request.data = json.dumps(body).encode()
                request.add_header("Content-Type", "application/json")
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.read()

        end = time.monotonic() + 300
        while True:  # until the server has read 3 runs and two folds of the last
            try:
                if len(json.loads(get("plugin/scalars/tags"))) >= 5:
                    break
            except (urllib.error.URLError, ConnectionError):
                pass
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.5)
        ask = lambda path, body=None: json.loads(get(path, body))  # noqa: E731
        ask.bytes, ask.folder = get, folder
        yield ask
        process.terminate()


JOBS = ("0_egin_e_bonds", "1_egin_e_bonds")
KEPT = "kept"
CURVES = {f"{what}/{part}" for what in ("loss", "accuracy") for part in ("train", "validation", "test")}
CURVES |= {"optimizer/learning_rate", "optimizer/gradient_norm", "time/seconds"}


def values(ask, run, tag):
    points = ask(f"plugin/scalars/scalars?{urllib.parse.urlencode({'run': run, 'tag': tag})}")
    assert [step for _, step, _ in points] == [1, 2, 3]
    return [value for *_, value in points]


def test_sweep_has_one_run_per_job(ask):
    tags = ask("plugin/scalars/tags")
    assert set(tags) == {*JOBS, KEPT, f"{KEPT}/fold_00", f"{KEPT}/fold_02"}
    for job in JOBS:
        assert CURVES | {"epsilon/convs.0", "epsilon/convs.1"} < set(tags[job])
        assert len(set(values(ask, job, "epsilon/convs.1"))) == 3  # it is learned


def test_fold_curves_keeps_the_runs_of_folds(ask):
    tags = ask("plugin/scalars/tags")
    assert all(set(tags[f"{KEPT}/fold_{fold:02d}"]) == CURVES for fold in (0, 2))


def test_run_has_mean_and_spread_over_folds(ask):
    tag = "accuracy/test"
    mean = values(ask, KEPT, tag)
    folds = [values(ask, f"{KEPT}/fold_{fold:02d}", tag) for fold in (0, 2)]
    assert mean == pytest.approx([sum(pair) / 2 for pair in zip(*folds, strict=True)], abs=1e-6)
    (category,) = ask("plugin/custom_scalars/layout")["category"]
    charts = {chart["title"]: chart["margin"]["series"][0] for chart in category["chart"]}
    assert {"accuracy/test", "accuracy/validation", "loss/train"} <= set(charts)
    band = charts[tag]
    assert band["value"] == tag
    low, high = (values(ask, KEPT, band[end]) for end in ("lower", "upper"))
    for at_low, at_high, *pair in zip(low, high, *folds, strict=True):
        assert (at_low, at_high) == pytest.approx((min(pair), max(pair)), abs=1e-6)  # the std of two values


def test_hparams_show_varied_options_and_metrics(ask):
    columns = ask("plugin/hparams/experiment", {})
    options = [option["name"] for option in columns["hparamInfos"]]
    differing = [option["name"] for option in columns["hparamInfos"] if option["differs"]]
    assert options[: len(differing)] == differing == ["model", "model.hidden_dim", "model.learn_eps"]
    metrics = [metric["name"]["tag"] for metric in columns["metricInfos"]]
    assert metrics[:5] == [
        "accuracy (final)/selected",
        "accuracy (last)/last",
        "accuracy (last)/last_20",
        "accuracy (optimistic)/best_per_fold",
        "accuracy (optimistic)/common_epoch",
    ]
    body = {
        "startIndex": 0,
        "sliceSize": 10,
        "colParams": [],
        "allowedStatuses": ["STATUS_SUCCESS", "STATUS_UNKNOWN"],
    }
    rows = ask("plugin/hparams/session_groups", body)["sessionGroups"]
    # Unique names that the tab does not truncate.
    assert {len(row["name"]) <= 14 for row in rows} == {True} and len({row["name"] for row in rows}) == 3
    assert sorted(row["hparams"]["model.hidden_dim"] for row in rows) == [4, 8, 8]
    for row in rows:
        assert row["hparams"]["model"].startswith("EGIN-E") and row["hparams"]["dataset"] == "bonds"
        found = {metric["name"]["tag"] for metric in row["metricValues"]}
        assert {*metrics[:5], "final/auroc", "final/log_loss", "final/brier", "final/ece"} <= found


def test_figures_are_logged(ask):
    tags = ask("plugin/images/tags")
    assert all(set(tags[job]) == {"curves", "confusion", "probabilities"} for job in JOBS)
    for name in ("curves", "confusion", "probabilities"):
        (shown,) = ask(f"plugin/images/images?run={JOBS[1]}&tag={name}&sample=0")
        png = (ask.folder / JOBS[1] / f"{name}.png").read_bytes()
        assert ask.bytes(f"plugin/images/individualImage?{shown['query']}") == png


def test_projector_has_the_test_graphs_of_each_fold(ask):
    assert set(JOBS) <= set(ask("plugin/projector/runs"))
    embeddings = ask(f"plugin/projector/info?run={JOBS[1]}")["embeddings"]
    assert [one["tensorName"] for one in embeddings] == ["fold_00", "fold_01", "fold_02"]
    assert all(one["tensorShape"][0] == 20 for one in embeddings)  # a third of 60 graphs
