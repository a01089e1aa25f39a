"""Signature and docstring of a model have every argument, those of its base classes too."""

import inspect

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import get_class
from running import ROOT

from egin_dgl.data import DatasetInfo
from egin_dgl.models import EGIN, GraphClassifier
from egin_dgl.models.model import documented_arguments

with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
    OPTIONS = {
        path.stem: compose("train", [f"model={path.stem}"]).model
        for path in sorted((ROOT / "conf" / "model").glob("*.yaml"))
    }
ZOO = {name: get_class(options._target_) for name, options in OPTIONS.items()}
INFO = DatasetInfo(node_dim=3, edge_dim=2, classes=2)
every_model = pytest.mark.parametrize("name", ZOO)


@every_model
def test_every_argument_is_documented(name):
    model = ZOO[name]
    arguments = inspect.signature(model).parameters
    assert list(documented_arguments(model.__doc__)) == list(arguments)
    assert all(one.kind is one.POSITIONAL_OR_KEYWORD for one in arguments.values())


@every_model
def test_documented_arguments_are_accepted(name):
    arguments = dict(list(inspect.signature(ZOO[name]).parameters.items())[1:])
    if "k" in arguments:  # else the sizes of training graphs must be known
        arguments["k"] = arguments["k"].replace(default=10)
    ZOO[name](INFO, **{key: one.default for key, one in arguments.items()})


@every_model
def test_options_of_the_yaml_file_are_arguments(name):
    assert {key for key in OPTIONS[name] if not key.startswith("_")} <= set(
        inspect.signature(ZOO[name]).parameters
    )


def test_descriptions_of_several_lines_are_kept():
    assert (
        documented_arguments(EGIN.__doc__)["scale_by_size"]
        == documented_arguments(GraphClassifier.__doc__)["scale_by_size"]
    )
    assert "\n" in documented_arguments(EGIN.__doc__)["scale_by_size"]


def test_a_user_model_inherits_arguments():
    class Mine(EGIN):
        """Mine.

        Args:
            depth: how deep.
        """

        def __init__(self, info, depth: int = 3, **options):
            super().__init__(info, num_layers=depth, **options)

    assert list(inspect.signature(Mine).parameters)[:3] == ["info", "depth", "mlp_layers"]
    assert documented_arguments(Mine.__doc__)[
        "depth"
    ] == "how deep." and "mlp_layers" in documented_arguments(Mine.__doc__)


def test_the_kernel_keeps_the_sizes_of_graphs_for_values():
    values = DatasetInfo(node_dim=3, edge_dim=2, classes=0, task="regression", target_names=("y",))
    kernel = ZOO["ewl_kernel"]
    assert kernel(INFO).normalize and not kernel(values).normalize
    assert kernel(values, normalize=True).normalize and not kernel(INFO, normalize=False).normalize
