"""pytest plugin for the marker `numbers`, which every test that trains must have.

Trained numbers depend on the order of sums, and so on the processor; `make test-machines` runs the marked tests under
several CPU settings. A test is marked if it uses the fixture `numbers`, directly or through other fixtures. A test that
trains without the marker fails.

The marker `process`, set by the fixtures `command` and `start`, leaves a test out of `make test-machines`: it looks at files,
signals and terminals, and compares numbers with others of the same machine only.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest
from torch.optim.optimizer import register_optimizer_step_post_hook

from egin_dgl.training.job import FoldJob

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
NOT_TRAINING = {"ewl.py", "table.py", "zoo.py"}  # zoo.py trains only to measure times
NAMES = "|".join(path.name for path in SCRIPTS.glob("*.py") if path.name not in NOT_TRAINING)
# An argument of a command, or part of one: a shell line, or Python code.
TRAINS = re.compile(rf"(?<![\w.-])(?:{NAMES})(?!\w)|\begin train\b|\bmake\b(?: \S+)* train\b")

allowed = True  # whether training is allowed now; always outside of tests


@pytest.fixture(scope="session")
def numbers() -> None:
    """For fixtures and tests that train; sets the marker."""


@pytest.fixture(scope="session")
def unwatched() -> Callable[[], AbstractContextManager]:
    """Context for fixtures that check themselves that nothing is trained."""
    return partial(allow_training, True)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "numbers: checks trained numbers; set by the fixture `numbers`")
    config.addinivalue_line("markers", "process: starts the app as a process; set by `command` and `start`")
    register_optimizer_step_post_hook(lambda *_: fail_if_unmarked("took an optimizer step"))
    sys.addaudithook(watch_processes)
    watch_folds()


def pytest_itemcollected(item: pytest.Item) -> None:
    fixtures = getattr(item, "fixturenames", ())
    if "numbers" in fixtures:
        item.add_marker("numbers")
    if {"command", "start"} & set(fixtures):
        item.add_marker("process")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    with allow_training(item.get_closest_marker("numbers") is not None):
        return (yield)


@contextmanager
def allow_training(value: bool) -> Iterator[None]:
    global allowed
    before, allowed = allowed, value
    try:
        yield
    finally:
        allowed = before


def fail_if_unmarked(action: str) -> None:
    if not allowed:
        pytest.fail(f"this test {action} without the marker: train by a fixture that uses `numbers`")


def watch_folds() -> None:
    """Every fold is a FoldJob, also those of workers and kernel machines."""
    make = FoldJob.__init__

    def watched(self, *args, **fields):
        fail_if_unmarked("made a FoldJob")
        make(self, *args, **fields)

    FoldJob.__init__ = watched


def watch_processes(event: str, details: tuple) -> None:
    if event != "subprocess.Popen":
        return
    _, arguments, _, _ = details
    line = " ".join(map(str, arguments)) if isinstance(arguments, (list, tuple)) else str(arguments)
    if found := TRAINS.search(line):
        fail_if_unmarked(f"called {found[0]}")
