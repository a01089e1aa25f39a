"""`make` on a machine without a fitting Python says so in one sentence; with one it installs only when it must."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture(autouse=True)
def nothing_is_trained(unwatched):
    """The interpreter that make finds here, if it finds one, only writes down what it is asked."""
    with unwatched():
        yield


def make(*targets, **environment):
    return subprocess.run(
        ["make", *targets], cwd=ROOT, env=environment or None, capture_output=True, text=True, timeout=60
    )


def test_no_fitting_python_is_one_sentence(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("make", "sh", "touch"):
        (tools / tool).symlink_to(shutil.which(tool))
    (tools / "python3").write_text(
        "#!/bin/sh\nexit 1\n"
    )  # a Python of another version fails the same question
    (tools / "python3").chmod(0o755)
    done = make(f"VENV={tmp_path / 'venv'}", "train", PATH=str(tools))
    assert done.returncode != 0
    sentence = done.stderr.splitlines()[0]
    assert sentence.startswith("egin_dgl needs Python 3.10, 3.11 or 3.12")
    assert f"uv venv --python 3.11 --seed {tmp_path / 'venv'}" in sentence
    assert not (tmp_path / "venv").exists()


def stand_in(folder):
    """An interpreter that writes down what it is asked, where make looks for one; and the file it writes to."""
    python, asked = folder / "venv" / "bin" / "python", folder / "asked"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    python.chmod(0o755)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return asked


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "reproducible=any"),
        ("model=gin reproducible=false", "reproducible=any model=gin reproducible=false"),  # the last counts
        ("resume=outputs/run", "resume=outputs/run"),  # goes on as it began
    ],
)
def test_train_computes_the_same_digits_everywhere_unless_told_otherwise(given, words, tmp_path):
    asked = stand_in(tmp_path)
    train = ["make", f"VENV={tmp_path / 'venv'}", "train", f"ARGS={given}"]
    assert subprocess.run(train, cwd=tmp_path, capture_output=True).returncode == 0
    assert asked.read_text().splitlines()[-1] == f"scripts/train.py {words}"


def test_it_installs_once_and_again_when_pyproject_changes(tmp_path):
    """The rule is about when, not about pip."""
    asked = stand_in(tmp_path)

    def installs():
        asked.write_text("")
        done = subprocess.run(
            ["make", f"VENV={tmp_path / 'venv'}", "train"], cwd=tmp_path, capture_output=True
        )
        assert done.returncode == 0
        return asked.read_text().count("install -e")

    assert installs() == 1
    assert installs() == 0
    stamp = (tmp_path / "venv" / ".installed").stat().st_mtime
    os.utime(tmp_path / "pyproject.toml", (stamp + 1, stamp + 1))
    assert installs() == 1


def test_help_names_the_targets():
    listed = make("help").stdout
    assert all(
        f"make {target}" in listed
        for target in ("train", "test", "test-machines", "docs", "tensorboard", "lint", "test-dgl2")
    )
