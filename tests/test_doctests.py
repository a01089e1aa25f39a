"""The examples in the docstrings of layers and models run, and every public class has one."""

import doctest
import inspect
from importlib import import_module

import pytest

from egin_dgl import layers, models

CLASSES = [
    getattr(package, name) for package in (layers, models) for name in package.__all__ if name != "GraphModel"
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_example_runs(cls):
    if ">>> import dgl" in cls.__doc__:
        pytest.importorskip("dgl", reason="DGL is not installed")
    module = import_module(cls.__module__)
    examples = doctest.DocTestParser().get_doctest(cls.__doc__, vars(module).copy(), cls.__name__, None, None)
    assert examples.examples, "no example"
    failures = []
    doctest.DocTestRunner().run(examples, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_docstring_describes_every_argument(cls):
    arguments = [name for name in inspect.signature(cls).parameters if name != "self"]
    missing = [name for name in arguments if f"    {name}: " not in inspect.cleandoc(cls.__doc__)]
    assert not missing
