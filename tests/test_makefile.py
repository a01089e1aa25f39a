"""`make` without a suitable Python prints one sentence; with one it installs only when necessary."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture(autouse=True)
def no_training(unwatched):
    """The interpreter that make finds here only records its arguments."""
    with unwatched():
        yield


def make(*targets, **environment):
    return subprocess.run(
        ["make", *targets], cwd=ROOT, env=environment or None, capture_output=True, text=True, timeout=60
    )


def test_missing_python_is_reported_in_one_sentence(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("make", "sh", "touch"):
        (tools / tool).symlink_to(shutil.which(tool))
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")  # like a Python of another version
    (tools / "python3").chmod(0o755)
    done = make(f"VENV={tmp_path / 'venv'}", "train", PATH=str(tools))
    assert done.returncode != 0
    sentence = done.stderr.splitlines()[0]
    assert sentence.startswith("egin_dgl needs Python 3.10, 3.11, 3.12 or 3.13")
    assert f"uv venv --python 3.11 --seed {tmp_path / 'venv'}" in sentence
    assert not (tmp_path / "venv").exists()


def fake_python(directory):
    """Create an interpreter that records its arguments where make looks for one; return the file it writes."""
    python, calls = directory / "venv" / "bin" / "python", directory / "calls"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
    python.chmod(0o755)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, directory)
    return calls


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("", "reproducible=any"),
        (
            "model=gin reproducible=false",
            "reproducible=any model=gin reproducible=false",
        ),  # the last one counts
        ("resume=outputs/run", "resume=outputs/run"),  # keeps its settings
    ],
)
def test_train_is_reproducible_across_cpus_unless_overridden(args, expected, tmp_path):
    calls = fake_python(tmp_path)
    train = ["make", f"VENV={tmp_path / 'venv'}", "train", f"ARGS={args}"]
    assert subprocess.run(train, cwd=tmp_path, capture_output=True).returncode == 0
    assert calls.read_text().splitlines()[-1] == f"scripts/train.py {expected}"


def test_make_installs_once_and_again_when_pyproject_changes(tmp_path):
    calls = fake_python(tmp_path)

    def installs():
        calls.write_text("")
        done = subprocess.run(
            ["make", f"VENV={tmp_path / 'venv'}", "train"], cwd=tmp_path, capture_output=True
        )
        assert done.returncode == 0
        return calls.read_text().count("install -e")

    assert installs() == 1
    assert installs() == 0
    stamp = (tmp_path / "venv" / ".installed").stat().st_mtime
    os.utime(tmp_path / "pyproject.toml", (stamp + 1, stamp + 1))
    assert installs() == 1


def test_help_names_the_targets():
    listed = make("help").stdout
    assert all(
        f"make {target}" in listed
        for target in (
            "train",
            "test",
            "test-machines",
            "docs",
            "tensorboard",
            "lint",
            "test-dgl2",
            "test-cluster",
        )
    )
