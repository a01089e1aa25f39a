"""Models by the name of their class, for those who load what was trained: what a file names is not simply called."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from egin_dgl.errors import ConfigError
from egin_dgl.models.model import GraphModel
from egin_dgl.models.wl_kernel import WLKernelSVM


def model_maker(record: dict, trust: bool = False) -> Callable[..., Any]:
    """`make(info) -> model`, as the model's configuration says; a class from elsewhere only with `trust`."""
    options = {name: value for name, value in record.items() if not name.startswith("_")}
    return partial(model_class(str(record["_target_"]), trust), **options)


def model_class(target: str, trust: bool = False) -> type:
    """The class itself must be a model: a name that begins well may still lead elsewhere."""
    place, _, name = target.rpartition(".")
    if not trust and place.split(".")[:2] != ["egin_dgl", "models"]:
        raise ConfigError(
            f"{target} is no model of this package; if you trust where it comes from, say trust=true"
        )
    try:
        found = getattr(import_module(place), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"there is no model {target} ({error})") from None
    if not (isinstance(found, type) and (trust or issubclass(found, (GraphModel, WLKernelSVM)))):
        raise ConfigError(f"{target} is no model")
    return found
