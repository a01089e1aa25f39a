"""A real TensorBoard server on loopback is asked what a person would look at."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from running import SMALL


@pytest.fixture(scope="module")
def ask(command, tmp_path_factory):
    """A sweep of two jobs, and a function that asks the server that shows it."""
    folder = tmp_path_factory.mktemp("sweep")
    done = command(
        "-m", *SMALL[:-1], "model.learn_eps=true", "model.hidden_dim=4,8", f"hydra.sweep.dir={folder}"
    )
    assert done.returncode == 0, done.stderr
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
        while True:  # until the server is up and has read all runs: 2 jobs, each with 3 folds
            try:
                if len(json.loads(get("plugin/scalars/tags"))) == 8:
                    break
            except (urllib.error.URLError, ConnectionError):
                pass
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.5)
        yield lambda path, body=None: json.loads(get(path, body))
        process.terminate()


JOBS = ("0_egin_e_bonds", "1_egin_e_bonds")


def test_each_fold_has_its_curves(ask):
    tags = ask("plugin/scalars/tags")
    wanted = {f"{what}/{part}" for what in ("loss", "accuracy") for part in ("train", "validation", "test")}
    wanted |= {"optimizer/learning_rate", "optimizer/gradient_norm", "time/seconds"}
    wanted |= {"epsilon/convs.0", "epsilon/convs.1"}
    for job in JOBS:
        for fold in range(3):
            assert set(tags[f"{job}/fold_{fold:02d}"]) == wanted
    points = ask(f"plugin/scalars/scalars?run={JOBS[0]}/fold_01&tag=accuracy/test")
    assert [step for _, step, _ in points] == [1, 2, 3]


def test_the_job_has_mean_and_spread_over_folds(ask):
    series = {
        line: [
            value for *_, value in ask(f"plugin/scalars/scalars?run={JOBS[0]}&tag=folds_accuracy/test/{line}")
        ]
        for line in ("mean", "low", "high")
    }
    folds = [
        [
            value
            for *_, value in ask(f"plugin/scalars/scalars?run={JOBS[0]}/fold_{fold:02d}&tag=accuracy/test")
        ]
        for fold in range(3)
    ]
    assert series["mean"] == pytest.approx([sum(values) / 3 for values in zip(*folds, strict=True)], abs=1e-6)
    assert all(
        low <= mean <= high
        for low, mean, high in zip(*(series[k] for k in ("low", "mean", "high")), strict=True)
    )
    titles = {
        chart["title"]
        for group in ask("plugin/custom_scalars/layout")["category"]
        for chart in group["chart"]
    }
    assert {"accuracy/test", "accuracy/validation", "loss/train"} <= titles


def test_a_sweep_is_compared_by_hyper_parameters(ask):
    body = {
        "startIndex": 0,
        "sliceSize": 10,
        "colParams": [],
        "allowedStatuses": ["STATUS_SUCCESS", "STATUS_UNKNOWN"],
    }
    rows = ask("plugin/hparams/session_groups", body)["sessionGroups"]
    assert sorted(row["name"] for row in rows) == list(JOBS)
    assert sorted(row["hparams"]["model.hidden_dim"] for row in rows) == [4, 8]
    for row in rows:
        assert row["hparams"]["model"] == "EGIN-E-ε" and row["hparams"]["dataset"] == "bonds"
        metrics = {metric["name"]["tag"]: metric["value"] for metric in row["metricValues"]}
        wanted = {"test_accuracy/selected", "test_accuracy_optimistic/common_epoch", "test/auroc"}
        assert wanted | {"test/log_loss", "test/brier", "test/ece"} <= set(metrics)


def test_pictures_are_there(ask):
    tags = ask("plugin/images/tags")
    assert all(set(tags[job]) == {"curves", "confusion"} for job in JOBS)


def test_the_projector_has_the_test_graphs_of_each_fold(ask):
    runs = ask("plugin/projector/runs")
    assert {f"{job}/fold_{fold:02d}" for job in JOBS for fold in range(3)} <= set(runs)
    info = ask(f"plugin/projector/info?run={JOBS[1]}/fold_00")
    (embedding,) = info["embeddings"]
    assert embedding["tensorShape"][0] == 20  # a third of 60 graphs
