"""The ways to run the app as fixtures, so that tests which train are marked `numbers`."""

import os
from pathlib import Path

import pytest
import running
import torch

from egin_dgl.backend import has_dgl
from egin_dgl.errors import BackendError

torch.set_num_threads(1)  # as folds are trained; on a busy machine two threads are many times slower than one

pytest_plugins = ["pytester", "trained_numbers"]


def pytest_addoption(parser):
    parser.addoption(
        "--seed", type=int, default=0, help="train from this seed: tests of numbers hold for any"
    )


def pytest_configure(config):
    running.seed = config.getoption("--seed")


def skip_without_dgl():
    """A hook around a test or fixture: what needs DGL is skipped where DGL is not installed."""
    try:
        return (yield)
    except BackendError as error:
        if has_dgl():
            raise
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    return (yield from skip_without_dgl())


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    return (yield from skip_without_dgl())


@pytest.fixture(scope="session")
def molecules():
    """The path of a table of MoleculeNet, by its name, or a skip that says why."""

    def find(name: str) -> Path:
        path = Path(os.environ.get("EGIN_MOLECULES", "")) / f"{name}.csv"
        if not os.environ.get("EGIN_MOLECULES") or not path.exists():
            pytest.skip(f"{name}.csv needs EGIN_MOLECULES, a directory with tables of MoleculeNet")
        return path

    return find


@pytest.fixture(scope="session")
def run_here(numbers):
    return running.run_here


@pytest.fixture(scope="session")
def small_run(numbers, tmp_path_factory):
    """A finished run of three folds, trained once; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("small") / "run"
    running.run_here(folder, *running.SMALL, "trainer.checkpoint_every=1", "model=gin")
    return folder


@pytest.fixture(scope="session")
def command(numbers):
    return running.command


@pytest.fixture(scope="session")
def start(numbers):
    return running.start


@pytest.fixture(scope="session")
def refused(unwatched):
    """scripts/train.py with options that it refuses before any fold: nothing is trained, so nothing is marked."""

    def run(folder, *options, **environment):
        with unwatched():
            done = running.command(*options, cwd=folder, **environment)
        assert done.returncode == 1, done.stdout
        assert not list(folder.rglob("fold_*")), "it trained before it refused: take the fixture `command`"
        return done

    return run
