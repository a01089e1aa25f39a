"""Runs that are trained once, and scripts in this process."""

import csv
import runpy
import sys
from types import SimpleNamespace

import pytest
from running import ROOT

OPTIONS = ["dataset=bonds", "dataset.graphs=60", "cv.k=3", "trainer.epochs=12"]


@pytest.fixture(scope="session")
def trained(run_here, tmp_path_factory):
    """The directory of a run with OPTIONS and these options."""
    directories = {}

    def directory(*options):
        if options not in directories:
            directories[options] = tmp_path_factory.mktemp("run")
            run_here(directories[options], *OPTIONS, *options)
        return directories[options]

    return directory


@pytest.fixture(scope="session")
def rows():
    """The rows of a CSV as dicts."""

    def read(path):
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return read


@pytest.fixture
def script(capsys, monkeypatch):
    """A script in this process, with the exit code and output of a process."""

    def call(name, *arguments, cwd):
        monkeypatch.chdir(cwd)
        path = str(ROOT / "scripts" / f"{name}.py")
        monkeypatch.setattr(sys, "argv", [path, *map(str, arguments)])
        code = 0
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:  # Python would print its message
            code = 1
            print(end, file=sys.stderr)
        printed = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=printed.out, stderr=printed.err)

    return call
