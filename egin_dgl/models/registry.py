"""The classes and functions that the `_target_` of a run directory may name.

A run directory may come from anybody, and a target is called. So a name is searched in a few modules only, and the object
found must be a model, dataset loader, optimizer, scheduler or colour transform. Classes of the user are named on the command
line or in the user's configuration.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

import egin_dgl.data
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.errors import ConfigError
from egin_dgl.ewl.preprocessing import ColorFeatures
from egin_dgl.models.estimators.sklearn_model import SklearnModel
from egin_dgl.models.model import GraphModel
from egin_dgl.options import format_value, validate_options

MODULES = ("egin_dgl.data", "egin_dgl.ewl", "egin_dgl.models", "torch.optim")  # with their submodules
CLASSES: dict[str, tuple[type, ...]] = {
    "model": (GraphModel, SklearnModel),
    "ewl": (ColorFeatures,),
    "optimizer": (Optimizer,),
    "scheduler": (LRScheduler,),
}
PARTIAL = ("model", "optimizer", "scheduler")  # completed by arguments that no configuration has
HYDRA_KEYS = ("_target_", "_partial_")
MAX_DEPTH = 20


def is_registered(found: object, kind: str) -> bool:
    """Whether an object is a model, optimizer, …: a class of that kind, or a public function that loads a dataset."""
    if kind == "dataset":
        public = [getattr(egin_dgl.data, name) for name in egin_dgl.data.__all__]
        loads = inspect.isfunction(found) and found.__annotations__.get("return") is GraphDataset
        return loads and any(found is one for one in public)
    return isinstance(found, type) and issubclass(found, CLASSES.get(kind, ()))


def find_registered(name: object, kind: str) -> Callable:
    """The model, dataset, ewl, optimizer or scheduler of a dotted name; no other module is imported."""
    module, _, last = str(name).rpartition(".")
    found = None
    if any(module == one or module.startswith(f"{one}.") for one in MODULES):
        try:
            found = getattr(import_module(module), last, None)
        except ImportError:
            found = None
    if found is None or not is_registered(found, kind):
        raise ConfigError(f"{kind}._target_: {format_value(name)} is not a {kind} of egin_dgl or torch")
    return found


def make_registered(node: object, kind: str = "model") -> Callable:
    """From a recorded mapping `{_target_: egin_dgl.models.EGIN, hidden_dim: 64, …}` to a callable that makes the object.

    Call it with the remaining arguments: `DatasetInfo` for a model. Options are validated by the signature; nothing nested in
    them is resolved or called.
    """
    if not isinstance(node, Mapping) or "_target_" not in node:
        raise ConfigError(f"{kind} must be a mapping with a _target_, got {type(node).__name__}")
    target = find_registered(node["_target_"], kind)
    options = {str(key): value for key, value in node.items() if key not in HYDRA_KEYS}
    refuse_hydra_syntax(options, kind)
    return partial(target, **validate_options(target, options, kind))


def refuse_hydra_syntax(content: Any, name: str, depth: int = 0) -> None:
    """Raise where Hydra would call or resolve something inside of these values, or where they nest too deep."""
    if depth > MAX_DEPTH:
        raise ConfigError(f"{name} is nested too deep")
    if isinstance(content, Mapping):
        for key, value in content.items():
            if not isinstance(key, str) or not key.isidentifier() or key.startswith("_"):
                raise ConfigError(
                    f"{name} has the key {format_value(key)}, which is not taken from a run directory"
                )
            refuse_hydra_syntax(value, f"{name}.{key}" if name else key, depth + 1)
    elif isinstance(content, (list, tuple)):
        for value in content:
            refuse_hydra_syntax(value, name, depth + 1)
    elif isinstance(content, str) and "${" in content:
        raise ConfigError(f"{name} has {format_value(content)}, which is not resolved from a run directory")
