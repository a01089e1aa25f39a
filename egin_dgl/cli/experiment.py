"""From a configuration to what is trained: everything built and checked once, before any fold starts."""

import itertools
import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

import torch
from omegaconf import DictConfig, OmegaConf
from torch import nn

from egin_dgl import reproducibility
from egin_dgl.cli.instantiate import build
from egin_dgl.cli.validation import validate_config as checked
from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.standardize import Standardizer
from egin_dgl.errors import ConfigError, EginError
from egin_dgl.models.model import GraphModel
from egin_dgl.models.wl_kernel import WLKernelSVM
from egin_dgl.runs.settings import mapping_of
from egin_dgl.training.device import pick_device
from egin_dgl.training.job import Recipe, TrainFold
from egin_dgl.training.kernel_svm import fit_kernel_fold
from egin_dgl.training.nested import Candidate, fit_nested_fold
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.trainer import fit_fold

log = logging.getLogger(__name__)

VARIABLE = ("model", "optimizer", "scheduler", "trainer")  # what an inner selection may choose


@dataclass(frozen=True)
class Experiment:
    """What the folds of a run share."""

    dataset: GraphDataset
    model: str  # its name in tables
    recipe: Recipe
    train: TrainFold
    epochs: int  # of a fold, those of candidates included
    device: torch.device


def make_experiment(cfg: DictConfig) -> Experiment:
    pick_device(cfg.device)  # one that is not there is told before anything is downloaded
    return make_experiment_on(cfg, build(cfg, "dataset"))


def make_experiment_on(cfg: DictConfig, dataset: GraphDataset) -> Experiment:
    """The experiment on a dataset that is there already."""
    device = pick_device(cfg.device)
    reproducible, processor = cfg.get("reproducible", False), reproducibility.processor_name()
    if reproducible and device.type != "cpu":
        log.warning("reproducible=%s is kept on the CPU only; use device=cpu", reproducible)
    elif reproducible and not reproducibility.is_guaranteed(reproducible, processor):
        log.warning(
            "reproducible=%s is kept by Intel's processors only, and this is %s; use reproducible=any",
            reproducible,
            processor,
        )
    recipe = make_recipe(cfg, dataset)
    model = try_out(recipe, dataset.info)
    check_together(cfg, recipe, device, isinstance(model, nn.Module))
    train: TrainFold = fit_fold
    epochs = recipe.options.epochs
    if not isinstance(model, nn.Module):
        train, epochs = fit_kernel_fold, len(model.penalties)
    if cfg.cv.get("grid"):
        candidates = [Candidate(chosen, make_recipe(varied, dataset)) for chosen, varied in points(cfg)]
        for candidate in candidates:
            try_out(candidate.recipe, dataset.info)
        candidates = [replace(each, recipe=sendable(each.recipe)) for each in candidates]
        train = partial(fit_nested_fold, candidates=candidates)
        epochs += sum(candidate.recipe.options.epochs for candidate in candidates)
    return Experiment(dataset, model.name, sendable(recipe), train, epochs, device)


def make_recipe(cfg: DictConfig, dataset: GraphDataset) -> Recipe:
    """What the configuration puts into the job of every fold."""
    options = TrainerOptions(**mapping_of(cfg.trainer))
    colors = build(cfg, "ewl")
    transforms = [*([colors] if colors else []), *([Standardizer.fit] if options.standardize else [])]
    return Recipe(
        make_model=build(cfg, "model"),
        make_optimizer=build(cfg, "optimizer"),
        make_scheduler=build(cfg, "scheduler"),
        options=options,
        transforms=transforms,
        metadata={
            "model": OmegaConf.to_container(cfg.model, resolve=True),
            "info": asdict(dataset.info),
            "vocabulary": json.loads(dataset.vocabulary.to_json()) if dataset.vocabulary else None,
        },
    )


def try_out(recipe: Recipe, info: DatasetInfo) -> GraphModel | WLKernelSVM:
    """Build everything once before any fold starts, so that a wrong value is one sentence and not ten."""
    group = "model"
    try:
        model = recipe.make_model(info)
        if not isinstance(model, (nn.Module, WLKernelSVM)):
            raise ConfigError(f"model._target_ must make a torch.nn.Module, it made a {type(model).__name__}")
        if isinstance(model, nn.Module):
            group = "optimizer"
            optimizer = recipe.make_optimizer(model.parameters())
            group = "scheduler"
            recipe.make_scheduler(optimizer)
    except EginError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{group}: {error}") from error
    return model


def sendable(recipe: Recipe) -> Recipe:
    """A recipe that was tried out, with Python's partial calls in place of Hydra's: to read those, each worker would load all
    of Hydra before its first step."""
    return replace(
        recipe,
        make_model=python_partial(recipe.make_model),
        make_optimizer=python_partial(recipe.make_optimizer),
        make_scheduler=python_partial(recipe.make_scheduler),
    )


def python_partial(call: Callable) -> Callable:
    return partial(call.func, *call.args, **call.keywords) if isinstance(call, partial) else call


def check_together(cfg: DictConfig, recipe: Recipe, device: torch.device, is_network: bool) -> None:
    """Options that are valid alone but not together."""
    options = recipe.options
    if cfg.get("run") is not None and not cfg.cv.get("refit"):
        raise ConfigError("run=FOLDER is for cv=refit, which trains one model by what that run settled")
    if recipe.transforms and not is_network:
        raise ConfigError(
            "this model counts the colours of the graphs as they are: use ewl=none, trainer.standardize=false"
        )
    if cfg.cv.get("grid") and not is_network:
        raise ConfigError(
            "cv=nested is for networks; a kernel chooses its penalty on validation in cv=ten_fold"
        )
    if cfg.cv.get("holdout") and cfg.cv.get("fold") is None:
        raise ConfigError("cv.holdout says that one split is all there is to run: use cv=holdout")
    if cfg.cv.get("grid") and not cfg.cv.validation:
        raise ConfigError("cv=nested chooses on the validation part: leave cv.validation=true")
    if options.patience and not cfg.cv.validation:
        raise ConfigError("trainer.patience needs a validation part, which this cv has not; use cv=ten_fold")
    if options.precision == "fp16" and device.type == "cpu":
        raise ConfigError("trainer.precision=fp16 needs a GPU; use bf16 on the CPU")


def points(cfg: DictConfig) -> list[tuple[dict, DictConfig]]:
    """The grid of a nested cross-validation: the settings of each of its points, and the whole configuration there."""
    grid: dict[str, list] = {}
    for group, choices in mapping_of(cfg.cv.grid, resolve=False).items():
        if group not in VARIABLE or not isinstance(choices, dict):
            raise ConfigError(f"cv.grid can vary options of {', '.join(VARIABLE)}, not {group}")
        for name, values in choices.items():
            if not isinstance(values, list) or not values:
                raise ConfigError(f"cv.grid.{group}.{name} must be a list of values, got {values}")
            if group == "trainer" and name in ("monitor", "monitor_window"):
                raise ConfigError(f"cv.grid cannot vary trainer.{name}, which its points are ranked by")
            if name in cfg[group]:
                grid[f"{group}.{name}"] = values
            else:
                log.info("this %s has no %s: left out of the grid", group, name)
    if not grid:
        raise ConfigError("none of the options of cv.grid is one of this model")
    found = []
    for values in itertools.product(*grid.values()):
        varied = cfg.copy()
        for key, value in zip(grid, values, strict=True):
            OmegaConf.update(varied, key, value)
        found.append((dict(zip(grid, values, strict=True)), checked(varied)))
    return found
