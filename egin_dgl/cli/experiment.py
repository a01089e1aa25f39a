"""From settings to what is trained: everything is built and checked once, before any fold starts."""

import copy
import itertools
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import torch
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from torch import nn

from egin_dgl.cli.validation import validate_settings
from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.splits import Split
from egin_dgl.data.transform import Standardizer
from egin_dgl.errors import ConfigError, EginError
from egin_dgl.models.estimators.sklearn_model import SklearnModel
from egin_dgl.models.model import GraphModel
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.settings import Settings
from egin_dgl.tasks import TASKS, Task
from egin_dgl.training.device import fold_device, pick_device
from egin_dgl.training.job import FoldJob, Recipe, TrainFold
from egin_dgl.training.nested import Candidate, fit_nested_fold
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.sklearn_fold import fit_sklearn_fold
from egin_dgl.training.trainer import fit_fold

log = logging.getLogger(__name__)

GRID_GROUPS = ("model", "optimizer", "scheduler", "trainer")  # whose options a grid can vary


@dataclass(frozen=True)
class Experiment:
    """What the folds of a run share."""

    dataset: GraphDataset
    model: str  # its name in tables
    recipe: Recipe
    train: TrainFold
    epochs: int  # of a fold, with those of its candidates
    device: torch.device
    seed: int

    def job(self, fold: FoldDir, split: Split) -> FoldJob:
        return FoldJob(
            fold=fold.fold,
            seed=self.seed,
            split=split,
            folder=fold,
            train=self.train,
            device=fold_device(self.device, fold.fold),
            recipe=self.recipe,
        )


def make_experiment(
    settings: Settings,
    references: Mapping[str, str] | None = None,
    trust: bool = True,
    dataset: GraphDataset | None = None,
) -> Experiment:
    """Build the experiment that validated settings describe.

    Args:
        settings: see `validate_settings`.
        references: see `RunSpec`; followed by the points of a grid. Default: none.
        trust: allow a grid to name classes that are not of egin_dgl or torch. Default: True.
        dataset: a dataset in memory. Default: that of the settings.
    """
    cv, device = settings["cv"], pick_device(settings["device"])  # an error before anything is downloaded
    dataset = build(settings, "dataset") if dataset is None else dataset
    warn_not_reproducible(settings["reproducible"], device)
    recipe = make_recipe(settings, dataset)
    model = build_once(recipe, dataset.info)
    check_combination(cv, recipe, device, model)
    check_task(recipe.options, TASKS[dataset.info.task], model)
    train: TrainFold = fit_fold
    epochs = recipe.options.epochs
    if isinstance(model, SklearnModel):
        model.check_dataset(dataset)
        train, epochs, device = fit_sklearn_fold, len(model.candidates), torch.device("cpu")
    if cv.get("grid"):
        points = expand_grid(settings, references or {}, trust)
        candidates = [Candidate(chosen, make_recipe(varied, dataset)) for chosen, varied in points]
        for candidate in candidates:
            build_once(candidate.recipe, dataset.info)
        train = partial(fit_nested_fold, candidates=candidates)
        epochs += sum(candidate.recipe.options.epochs for candidate in candidates)
    return Experiment(dataset, model.name, recipe, train, epochs, device, settings["seed"])


def build(settings: Settings, group: str) -> Any:
    """Instantiate a group of validated settings; a value that its class refuses is a `ConfigError`."""
    try:
        made = instantiate(settings[group], _convert_="all")  # plain lists and dicts
    except InstantiationException as error:
        cause = error.__cause__
        if isinstance(cause, EginError):
            raise cause from None
        raise ConfigError(f"{group}: {cause or error}") from error
    # A partial call of Python instead of Hydra's: to unpickle that, each worker would import Hydra.
    return partial(made.func, *made.args, **made.keywords) if isinstance(made, partial) else made


def warn_not_reproducible(reproducible: str | Literal[False], device: torch.device) -> None:
    if reproducible and device.type != "cpu":
        log.warning("reproducible=%s holds on the CPU only; use device=cpu", reproducible)


def make_recipe(settings: Settings, dataset: GraphDataset) -> Recipe:
    options = TrainerOptions(**settings["trainer"])
    colors = build(settings, "ewl")
    has_attributes = dataset.info.node_attributes or dataset.info.edge_attributes
    standardize = has_attributes if options.standardize == "auto" else options.standardize
    transforms = [*([colors] if colors else []), *([Standardizer.fit] if standardize else [])]
    return Recipe(
        make_model=build(settings, "model"),
        make_optimizer=build(settings, "optimizer"),
        make_scheduler=build(settings, "scheduler"),
        options=options,
        transforms=transforms,
        metadata={
            "model": settings["model"],
            "info": asdict(dataset.info),
            "vocabulary": json.loads(dataset.vocabulary.to_json()) if dataset.vocabulary else None,
        },
    )


def build_once(recipe: Recipe, info: DatasetInfo) -> GraphModel | SklearnModel:
    """Build the model before any fold starts, so that a wrong value is one error and not ten.

    Optimizer and scheduler are built by the folds: the first optimizer of a process imports torch's compiler.
    """
    try:
        model = recipe.make_model(info)
    except EginError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"model: {error}") from error
    if not isinstance(model, (nn.Module, SklearnModel)):
        raise ConfigError(f"model._target_ must make a torch.nn.Module, it made a {type(model).__name__}")
    return model


def check_combination(
    cv: Mapping, recipe: Recipe, device: torch.device, model: GraphModel | SklearnModel
) -> None:
    """Refuse options that are valid alone but not together."""
    options, grid, validation = recipe.options, cv.get("grid"), cv["validation"]
    given = [fit for fit in recipe.transforms if fit != Standardizer.fit or options.standardize is True]
    if isinstance(model, SklearnModel) and given:
        raise ConfigError(
            f"the {model.name} needs the graphs as they are: use ewl=none, trainer.standardize=auto"
        )
    if isinstance(model, SklearnModel) and grid:
        raise ConfigError(f"cv=nested is for networks: use cv=ten_fold for the {model.name}")
    if cv.get("holdout") and cv.get("fold") is None:
        raise ConfigError("cv.holdout is for a single split: use cv=holdout")
    if grid and not validation:
        raise ConfigError("cv=nested selects on the validation set: use cv.validation=true")
    if options.patience and not validation:
        raise ConfigError("trainer.patience needs a validation set, which this cv has not; use cv=ten_fold")
    if options.precision == "fp16" and device.type == "cpu":
        raise ConfigError("trainer.precision=fp16 needs a GPU; use bf16 on the CPU")


def check_task(options: TrainerOptions, task: type[Task], model: GraphModel | SklearnModel) -> None:
    """Refuse options that the task of the dataset does not have."""
    monitor = task.metric(options.monitor)
    if monitor.needs_probabilities and isinstance(model, SklearnModel) and not model.has_probabilities:
        raise ConfigError(
            f"trainer.monitor={monitor.name} needs probabilities, which the {model.name} has not"
        )
    if options.loss not in task.losses:
        valid = ", ".join(task.losses)
        raise ConfigError(f"trainer.loss must be one of {valid} for task={task.name}, got {options.loss!r}")


def expand_grid(
    settings: Settings, references: Mapping[str, str], trust: bool
) -> list[tuple[dict, Settings]]:
    """Return the points of a nested cross-validation: the options that vary, and all settings with them."""
    grid = read_grid(settings)
    points = []
    for values in itertools.product(*grid.values()):
        chosen, varied = dict(zip(grid, values, strict=True)), copy.deepcopy(settings)
        following = {name: chosen[source] for name, source in references.items() if source in chosen}
        for option, value in (following | chosen).items():
            group, _, name = option.partition(".")
            if group in GRID_GROUPS:
                varied[group][name] = value
        points.append((chosen, validate_settings(varied, trust)))
    return points


def read_grid(settings: Settings) -> dict[str, list]:
    """Return the values of each option to vary, ``{"model.hidden_dim": [32, 64]}``."""
    grid: dict[str, list] = {}
    for group, choices in settings["cv"]["grid"].items():
        if group not in GRID_GROUPS:
            raise ConfigError(f"cv.grid can vary options of {', '.join(GRID_GROUPS)}, not {group}")
        for name, values in choices.items():
            if group == "trainer" and name in ("monitor", "monitor_window"):
                raise ConfigError(f"cv.grid cannot vary trainer.{name}, which its points are ranked by")
            if name in settings[group]:
                grid[f"{group}.{name}"] = values
            else:
                log.info("this %s has no %s: left out of the grid", group, name)
    if not grid:
        raise ConfigError("none of the options of cv.grid is one of this model")
    return grid
