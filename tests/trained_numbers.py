"""The marker `numbers`: on every test that trains, by the fixture it trains with; to train without it is an error.

What training comes to depends on the order of sums, and so on the machine. `make test-machines` runs the tests with
this marker under several arithmetics, so none may be without it. Whatever trains takes the fixture `numbers`; a test
that reaches it, through however many fixtures, is marked. A test that trains some other way fails on the spot.
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
SHOW_NO_TRAINED_NUMBER = {"ewl.py", "table.py", "zoo.py"}  # zoo.py trains to see how long it takes
NAMES = "|".join(path.name for path in SCRIPTS.glob("*.py") if path.name not in SHOW_NO_TRAINED_NUMBER)
# As a word of a command, or within one: a line for a shell, or Python's.
TRAINS = re.compile(rf"(?<![\w.-])(?:{NAMES})(?!\w)|\begin train\b|\bmake\b(?: \S+)* train\b")

allowed = True  # to train, now: before the first test and between tests there is nobody to blame


@pytest.fixture(scope="session")
def numbers() -> None:
    """For fixtures and tests that train: it does nothing but set the marker."""


@pytest.fixture(scope="session")
def unwatched() -> Callable[[], AbstractContextManager]:
    """A context for fixtures that see to it themselves that nothing is trained."""
    return partial(training, True)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "numbers: looks at a trained number; set by the fixture `numbers`")
    register_optimizer_step_post_hook(lambda *_: blame("took a step of an optimizer"))
    sys.addaudithook(watch_processes)
    watch_folds()


def pytest_itemcollected(item: pytest.Item) -> None:
    if "numbers" in getattr(item, "fixturenames", ()):
        item.add_marker("numbers")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    with training(item.get_closest_marker("numbers") is not None):
        return (yield)


@contextmanager
def training(may: bool) -> Iterator[None]:
    """Whether what is inside may train."""
    global allowed
    before, allowed = allowed, may
    try:
        yield
    finally:
        allowed = before


def blame(deed: str) -> None:
    if not allowed:
        pytest.fail(f"this test {deed} without the marker: let it train by a fixture that takes `numbers`")


def watch_folds() -> None:
    """A fold is a FoldJob before it is anything else, also one that a worker trains, or a kernel's."""
    make = FoldJob.__init__

    def watched(self, *args, **fields):
        blame("made a FoldJob")
        make(self, *args, **fields)

    FoldJob.__init__ = watched


def watch_processes(event: str, details: tuple) -> None:
    if event != "subprocess.Popen":
        return
    _, words, _, _ = details
    said = " ".join(map(str, words)) if isinstance(words, (list, tuple)) else str(words)
    if found := TRAINS.search(said):
        blame(f"called {found[0]}")
