"""The command `egin`: its help and errors load no numeric library, and an installed wheel works in any directory."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from running import ROOT

from egin_dgl.cli.commands import ewl, table
from egin_dgl.cli.main import COMMANDS
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.evaluation.protocols import PROTOCOLS
from egin_dgl.ewl.refinement import METHODS

USER_CONFIG = ROOT / "examples" / "own_model"
SOURCES = ("egin_dgl", "conf", "pyproject.toml", "setup.py", "README.md", "LICENSE")

# Runs each command line of a JSON list in a forked process: Hydra is imported once, and torch, DGL and numpy never.
FORK_EACH = """
import json, os, sys, tempfile

for name in ("torch", "dgl", "numpy"):
    sys.modules[name] = None
from hydra import compose
from egin_dgl.cli.main import main


def run(arguments):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        if not (child := os.fork()):
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = ["egin", *arguments]
            code = 0
            try:
                main()
            except SystemExit as stop:
                code = 0 if stop.code is None else 1
                if isinstance(stop.code, int):
                    code = stop.code
                elif stop.code is not None:
                    print(stop.code, file=sys.stderr)
            except BaseException as error:
                code = 70
                print(repr(error), file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read())
        return [code, *texts]


print(json.dumps([run(arguments) for arguments in json.loads(sys.argv[1])]))
"""

HELP = {name: [name, "--help"] for name in COMMANDS}
SUGGESTIONS = {
    "train": ["trian"],
    "egin_e": ["train", "model=egin_ee"],
    "hidden_dim": ["train", "model.hiden_dim=3"],
    "mutag": ["train", "dataset=mutagg", "--help"],
    "cuneiform": ["ewl", "audit", "dataset=cuneform"],
    "mine": ["train", "--config-dir", str(USER_CONFIG), "model=minne"],
}
MISSING = ["table", "nowhere"]


@pytest.fixture(scope="module")
def without_torch(unwatched, tmp_path_factory):
    """Results of the command lines above in a process where torch, DGL and numpy cannot be imported."""
    lines = [[], *HELP.values(), *SUGGESTIONS.values(), MISSING]
    with unwatched():  # nothing is trained without torch
        done = subprocess.run(
            [sys.executable, "-c", FORK_EACH, json.dumps(lines)],
            cwd=tmp_path_factory.mktemp("empty"),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    results = [SimpleNamespace(code=code, out=out, err=err) for code, out, err in json.loads(done.stdout)]
    return {tuple(line): result for line, result in zip(lines, results, strict=True)}


def test_help_loads_no_numeric_library(without_torch):
    overview = without_torch[()].out
    assert all(f"egin {name} " in overview for name in COMMANDS)
    for arguments in HELP.values():
        shown = without_torch[tuple(arguments)]
        assert shown.code == 0 and len(shown.out.splitlines()) > 3, shown.err
    assert "egin_e" in without_torch[("train", "--help")].out


@pytest.mark.parametrize("suggestion", SUGGESTIONS)
def test_misspelt_name_gets_a_suggestion_without_loading_a_numeric_library(without_torch, suggestion):
    result = without_torch[tuple(SUGGESTIONS[suggestion])]
    (line,) = result.err.splitlines()
    assert result.code == 1 and line.startswith("error: ") and line.endswith(f"(did you mean {suggestion}?)")


def test_table_of_a_missing_directory_is_an_error_of_one_line(without_torch):
    result = without_torch[tuple(MISSING)]
    assert result.code == 1 and result.err.startswith("error: nowhere: ") and result.err.count("\n") == 1


def test_names_repeated_in_help_are_those_defined():
    assert table.PROTOCOL_NAMES.split(", ") == list(PROTOCOLS)
    assert table.METRIC_NAMES.split(", ") == list(METRICS)
    assert ewl.REFINEMENTS == METHODS


def run_pip(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def build_wheel(directory: Path) -> Path:
    """Build from a copy, because building leaves files behind."""
    sources = directory / "sources"
    sources.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, sources)
    run_pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", directory, sources)
    (wheel,) = directory.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    files = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "egin_dgl").rglob("*.py")}
    yamls = {f"egin_dgl/{path.relative_to(ROOT)}" for path in (ROOT / "conf").rglob("*.yaml")}
    assert modules | yamls | {"egin_dgl/py.typed"} <= files
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files)
    assert not [name for name in files if name.startswith(("tests/", "scripts/", "conf/"))]


@pytest.mark.slow
def test_installed_wheel_works_outside_the_repository(numbers, tmp_path):
    """Train a user-defined model in two fold workers, resume, sweep with a launcher, and use the other commands."""
    wheel = build_wheel(tmp_path)
    check_contents(wheel)
    site, empty = tmp_path / "site", tmp_path / "empty"
    run_pip("install", "--no-deps", "--target", site, wheel)
    empty.mkdir()
    config = shutil.copytree(
        USER_CONFIG, tmp_path / "own_model", ignore=shutil.ignore_patterns("__pycache__")
    )

    def egin(*arguments, code=0):
        done = subprocess.run(
            [site / "bin" / "egin", *arguments],
            cwd=empty,
            env={**os.environ, "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == code, done.stderr
        return done

    small = ["cv.k=3", "trainer.epochs=2", "trainer.fold_workers=2", "model=mine", "dataset=few_bonds"]
    egin("train", "--config-dir", config, *small, "reproducible=any", "hydra.run.dir=run")
    record = json.loads((empty / "run" / "run.json").read_text())
    assert (record["model"], record["settings"]["reproducible"]) == ("Mine", "any")
    assert record["arithmetic"]["flags"]["MKL_CBWR"] == "COMPATIBLE"
    assert str(ROOT) not in (empty / "run" / ".hydra" / "hydra.yaml").read_text()

    refused = egin("train", "resume=run", code=1)
    assert refused.stderr.count("\n") == 1 and f"--config-dir {config}" in refused.stderr
    assert "Mine on bonds" in egin("train", "resume=run", "trust=true", "--config-dir", config).stdout

    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "hydra.sweep.dir=sweep"]
    egin("train", "-m", "experiment=mine_on_bonds", "--config-dir", config, "seed=1", *launcher)
    assert [path.parent.name for path in empty.glob("sweep/*/summary.json")] == ["0_mine_few_bonds"]

    assert "Mine" in egin("table", "run").stdout
    audited = egin("ewl", "audit", "dataset=few_bonds", "--config-dir", config, "--depth", "1")
    assert "bonds: 60 graphs" in audited.stdout
