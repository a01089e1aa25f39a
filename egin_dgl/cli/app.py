"""The training app: the one place that turns a configuration into calls of the library."""

import itertools
import json
import logging
import platform
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import torch
from omegaconf import DictConfig, ListConfig, OmegaConf
from rich.console import Console
from torch import nn

from egin_dgl import arithmetic
from egin_dgl.backend import installed_version
from egin_dgl.cli.door import build
from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.folds import fold_numbers, load_folds, make_folds
from egin_dgl.data.standardize import Standardizer
from egin_dgl.errors import ConfigError, EginError
from egin_dgl.evaluation.summary import confusion_counts, summarize
from egin_dgl.ewl import duplicate_groups
from egin_dgl.files import write_text
from egin_dgl.reporting.one_run.progress import FoldProgress
from egin_dgl.reporting.one_run.publish import publish
from egin_dgl.reporting.one_run.tables import metrics_line, summary_table
from egin_dgl.runs.reading import of_any_version, settings_of
from egin_dgl.training.cores import Share, cores
from egin_dgl.training.device import pick_device
from egin_dgl.training.engine import run_fold
from egin_dgl.training.fresh import in_fresh_process
from egin_dgl.training.job import FoldJob
from egin_dgl.training.kernel import run_kernel_fold
from egin_dgl.training.nested import Candidate, run_nested_fold
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.workers import run_folds

log = logging.getLogger(__name__)

VARIABLE = ("model", "optimizer", "scheduler", "trainer")  # what an inner selection may choose


def train(cfg: DictConfig, folder: str | Path, share: Share | None = None) -> dict:
    """Cross-validate as `cfg` says; everything there is to know about the run is in `folder` afterwards.

    Called again with the same configuration and folder, it goes on where it was interrupted. `share` is what it may use
    of the machine: all cores, if not said; `trainer.workers` wins over its number of workers. Where `reproducible` asks
    for arithmetic other than this process's, the run has a process of its own.
    """
    reproducible = cfg.get("reproducible", False)
    if reproducible not in arithmetic.CHOICES:
        raise ConfigError(f"reproducible must be false, avx2 or any, got {reproducible!r}")
    if not arithmetic.computes(reproducible):
        return in_fresh_process(reproducible, cross_validate, cfg, folder, share)
    return cross_validate(cfg, folder, share)


def cross_validate(cfg: DictConfig, folder: str | Path, share: Share | None = None) -> dict:
    """The run itself, in this process and its fold workers."""
    start = time.perf_counter()
    folder = Path(folder)
    share = share or Share(len(cores()))
    if cfg.trainer.workers:
        share = replace(share, workers=cfg.trainer.workers)
    settings = settings_of(cfg)
    if before := finished_before(folder, settings):
        show(before, folder)
        return before
    device = pick_device(cfg.device)
    if settings["reproducible"] and device.type != "cpu":
        log.warning("reproducible=%s is kept on the CPU only; use device=cpu", settings["reproducible"])
    dataset = build(cfg, "dataset")
    recipe = make_recipe(cfg, dataset)
    model = try_out(recipe, dataset.info)
    is_network = isinstance(model, nn.Module)
    check_options(cfg, recipe["options"], device, is_network, bool(recipe["transforms"]))
    run, epochs = run_fold, recipe["options"].epochs
    if not is_network:
        run, epochs = run_kernel_fold, len(model.penalties)
    if cfg.cv.get("grid"):
        candidates = [Candidate(chosen, make_recipe(varied, dataset)) for chosen, varied in points(cfg)]
        for candidate in candidates:
            try_out(candidate.changes, dataset.info)
        run = partial(run_nested_fold, candidates=candidates)
        epochs += sum(candidate.changes["options"].epochs for candidate in candidates)

    claim(folder, model.name, dataset, settings)
    labels = dataset.labels.numpy()
    folds_path = folder / "folds.json"
    if folds_path.exists() or cfg.cv.folds_file:
        folds = load_folds(cfg.cv.folds_file or folds_path, labels, dataset.info.name)
    else:
        groups = duplicate_groups(dataset, progress=True) if cfg.cv.group_duplicates else None
        folds = make_folds(labels, cfg.cv.k, cfg.seed, dataset.info.name, groups, cfg.cv.repeats)
    chosen = OmegaConf.to_container(cfg.cv).get("fold")
    numbers = range(len(folds.parts)) if chosen is None else fold_numbers(chosen)
    splits = {number: folds.split(number, cfg.cv.validation) for number in numbers}
    folds.save(folds_path)

    jobs = [
        FoldJob(
            fold=number,
            seed=cfg.seed,
            split=split,
            folder=folder / f"fold_{number:02d}",
            run=run,
            device=device,
            **recipe,
        )
        for number, split in splits.items()
    ]
    with FoldProgress(numbers, epochs) as progress:
        results = run_folds(dataset, jobs, progress, share)

    summary = {
        "model": model.name,
        "dataset": dataset.info.name,
        "seed": cfg.seed,
        "parameters": results[0].parameters,
        "seconds": time.perf_counter() - start,
        "device": str(device),
        "majority_accuracy": dataset.majority_accuracy,
    } | summarize(results, folds.k, cfg.cv.validation)
    counts = confusion_counts(results)
    histories = [result.history for result in results]
    publish(folder, summary, settings, histories, counts, dataset.info.class_names)

    show(summary, folder)
    return summary


def show(summary: dict, folder: Path) -> None:
    console = Console()
    console.print(summary_table(summary))
    console.print(metrics_line(summary), highlight=False)
    console.print(
        f"{summary['parameters']:,} parameters, {summary['seconds']:.1f} s, in", folder, soft_wrap=True
    )


def make_recipe(cfg: DictConfig, dataset: GraphDataset) -> dict:
    """What the configuration puts into the job of every fold."""
    options = TrainerOptions(**cfg.trainer)
    return {
        "make_model": build(cfg, "model"),
        "make_optimizer": build(cfg, "optimizer"),
        "make_scheduler": build(cfg, "scheduler"),
        "options": options,
        "transforms": [fit for fit in (build(cfg, "ewl"), options.standardize and Standardizer.fit) if fit],
        "metadata": {
            "model": OmegaConf.to_container(cfg.model, resolve=True),
            "info": asdict(dataset.info),
            "vocabulary": json.loads(dataset.vocabulary.to_json()),
        },
    }


def points(cfg: DictConfig) -> list[tuple[dict, DictConfig]]:
    """The grid of a nested cross-validation: the settings of each of its points, and the whole configuration there."""
    grid = {}
    for group, choices in cfg.cv.grid.items():
        if group not in VARIABLE or not isinstance(choices, DictConfig):
            raise ConfigError(f"cv.grid can vary options of {', '.join(VARIABLE)}, not {group}")
        for name, values in choices.items():
            if not isinstance(values, ListConfig) or not values:
                raise ConfigError(f"cv.grid.{group}.{name} must be a list of values, got {values}")
            if name in cfg[group]:
                grid[f"{group}.{name}"] = list(values)
            else:
                log.info("this %s has no %s: left out of the grid", group, name)
    if not grid:
        raise ConfigError("none of the options of cv.grid is one of this model")
    found = []
    for values in itertools.product(*grid.values()):
        varied = cfg.copy()
        for key, value in zip(grid, values, strict=True):
            OmegaConf.update(varied, key, value)
        found.append((dict(zip(grid, values, strict=True)), varied))
    return found


def try_out(recipe: dict, info: DatasetInfo):
    """Build everything once before any fold starts, so that a wrong value is one sentence and not ten."""
    group = "model"
    try:
        model = recipe["make_model"](info)
        if isinstance(model, nn.Module):
            group = "optimizer"
            optimizer = recipe["make_optimizer"](model.parameters())
            group = "scheduler"
            recipe["make_scheduler"](optimizer)
    except EginError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{group}: {error}") from error
    return model


def check_options(
    cfg, options: TrainerOptions, device: torch.device, is_network: bool, transformed: bool
) -> None:
    """Options that are valid alone but not together."""
    if transformed and not is_network:
        raise ConfigError(
            "this model counts the colours of the graphs as they are: use ewl=none, trainer.standardize=false"
        )
    if cfg.cv.get("grid") and not is_network:
        raise ConfigError(
            "cv=nested is for networks; a kernel chooses its penalty on validation in cv=ten_fold"
        )
    if cfg.cv.get("grid") and not cfg.cv.validation:
        raise ConfigError("cv=nested chooses on the validation part: leave cv.validation=true")
    if options.patience and not cfg.cv.validation:
        raise ConfigError("trainer.patience needs a validation part, which this cv has not; use cv=ten_fold")
    if options.precision == "fp16" and device.type == "cpu":
        raise ConfigError("trainer.precision=fp16 needs a GPU; use bf16 on the CPU")
    if not isinstance(cfg.seed, int) or cfg.seed < 0:
        raise ConfigError(f"seed must be a whole number from 0 on, got {cfg.seed!r}")


def finished_before(folder: Path, settings: dict) -> dict | None:
    """The summary of the same run, if it has ended in this folder already."""
    if not (folder / "summary.json").exists():
        return None
    run, summary = (json.loads((folder / name).read_text("utf-8")) for name in ("run.json", "summary.json"))
    return summary if of_any_version(run["settings"]) == settings else None


def claim(folder: Path, model: str, dataset: GraphDataset, settings: dict) -> None:
    """Write down what this run is; a folder that holds another run is refused."""
    path = folder / "run.json"
    here = arithmetic.described()
    run = {"model": model, "dataset": dataset.info.name, "settings": settings, "data_sha256": dataset.digest}
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        past = of_any_version(before["settings"])
        differing = [key for key in settings if past.get(key) != settings[key]]
        if before["data_sha256"] != dataset.digest:
            differing.append("the data")
        if differing:
            raise ConfigError(
                f"{folder} holds a run with other settings ({', '.join(differing)}); use a new folder"
            )
        if not settings["reproducible"] and before.get("arithmetic", here) != here:
            log.warning(
                "this run began on %s and goes on on %s: its last digits may differ from an unbroken run's, which "
                "reproducible=any prevents",
                arithmetic.in_words(before["arithmetic"]),
                arithmetic.in_words(here),
            )
        return
    packages = ("torch", "dgl", "numpy", "hydra-core", "egin-dgl")
    versions = {"python": platform.python_version()} | {name: installed_version(name) for name in packages}
    write_text(path, json.dumps(run | {"versions": versions, "arithmetic": here}, indent=1) + "\n")
