"""The real sets, where their files are there."""

import os

import pytest

from egin_dgl.data import load_tu

BUNDLED = ("MUTAG", "Cuneiform")  # these come with grakel


def real_set(name: str):
    """A real dataset, or a skip that says why."""
    if name not in BUNDLED and not os.environ.get("EGIN_DATA_ROOT"):
        pytest.skip(f"{name} needs EGIN_DATA_ROOT, a directory with TU datasets")
    return load_tu(name, cache=False, url=None)


@pytest.fixture(scope="session")
def dataset():
    loaded = {}

    def load(name: str):
        if name not in loaded:
            loaded[name] = real_set(name)
        return loaded[name]

    return load
