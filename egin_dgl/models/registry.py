"""What a folder may name: the models, datasets, transforms, optimizers and schedulers of this package and of torch.

A run's folder may come from anybody, and whatever a name leads to is called. So a name is looked up here in a few modules
alone, and the object that is found, not its name, must be of the kind that is wanted. A class of one's own is named on
one's own command line or in one's own configuration.
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
from egin_dgl.declared import declared
from egin_dgl.errors import ConfigError
from egin_dgl.ewl.preprocessing import ColorFeatures
from egin_dgl.models.model import GraphModel
from egin_dgl.models.wl_kernel import WLKernelSVM

# Importing runs code: these, and what is in them, and nothing else.
MODULES = ("egin_dgl.data", "egin_dgl.ewl", "egin_dgl.models", "torch.optim")
CLASSES: dict[str, tuple[type, ...]] = {
    "model": (GraphModel, WLKernelSVM),
    "ewl": (ColorFeatures,),
    "optimizer": (Optimizer,),
    "scheduler": (LRScheduler,),
}
SPECIAL = ("_target_", "_partial_")


def is_registered(found: object, kind: str) -> bool:
    """Whether this very object is a model, dataset, …: a class of that kind, or a public function that loads a dataset."""
    if kind == "dataset":
        public = [getattr(egin_dgl.data, name) for name in egin_dgl.data.__all__]
        loads = inspect.isfunction(found) and found.__annotations__.get("return") is GraphDataset
        return loads and any(found is one for one in public)
    return isinstance(found, type) and issubclass(found, CLASSES.get(kind, ()))


def registered(name: object, kind: str) -> Callable:
    """The model, dataset, ewl, optimizer or scheduler of this dotted name; nothing else is imported or called."""
    module, _, last = str(name).rpartition(".")
    found = None
    if module in MODULES or module.startswith(tuple(f"{one}." for one in MODULES)):
        try:
            found = getattr(import_module(module), last, None)
        except ImportError:
            found = None
    if found is None or not is_registered(found, kind):
        raise ConfigError(
            f"{name!r} is no {kind} of egin_dgl or torch, so it is not called on a folder's word"
        )
    return found


def trusted(node: object, kind: str = "model") -> Callable:
    """From a mapping that a folder kept, `{_target_: egin_dgl.models.EGIN, hidden_dim: 64, …}`, to what makes the object.

    Call the result with what is left: a model's with a `DatasetInfo`. Its options are checked as those of a command are, so
    they are plain values: whatever is nested in them is neither resolved nor called.
    """
    if not isinstance(node, Mapping) or "_target_" not in node:
        raise ConfigError(f"a {kind} is kept as a mapping with its _target_, got {type(node).__name__}")
    target = registered(node["_target_"], kind)
    options = {str(key): value for key, value in node.items() if key not in SPECIAL}
    refuse_special(options, kind)
    return partial(target, **declared(target).checked(options, kind))


def refuse_special(content: Any, where: str) -> None:
    """An error where Hydra would call or resolve something inside of these values."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            if str(key).startswith("_"):
                raise ConfigError(f"{where} has {key}, which is not followed on a folder's word")
            refuse_special(value, f"{where}.{key}")
    elif isinstance(content, (list, tuple)):
        for value in content:
            refuse_special(value, where)
    elif isinstance(content, str) and "${" in content:
        raise ConfigError(f"{where} has {content!r}, which is not resolved on a folder's word")
