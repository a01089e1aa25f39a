"""The training app: the one place that turns a configuration into calls of the library."""

import json
import platform
import time
from dataclasses import asdict
from pathlib import Path

import torch
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from torch import nn

from egin_dgl.backend import installed_version
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.folds import load_folds, make_folds
from egin_dgl.data.standardize import Standardizer
from egin_dgl.door import build
from egin_dgl.errors import ConfigError, EginError
from egin_dgl.ewl import duplicate_groups
from egin_dgl.files import write_text
from egin_dgl.reporting.progress import FoldProgress
from egin_dgl.reporting.run import publish
from egin_dgl.reporting.tables import summary_table
from egin_dgl.training.device import pick_device
from egin_dgl.training.engine import run_fold
from egin_dgl.training.job import FoldJob
from egin_dgl.training.kernel import run_kernel_fold
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.summary import confusion_counts, summarize
from egin_dgl.training.workers import run_folds

GROUPS = ("model", "dataset", "optimizer", "scheduler", "cv", "trainer", "ewl", "seed")


def train(cfg: DictConfig, folder: str | Path) -> dict:
    """Cross-validate as `cfg` says; everything there is to know about the run is in `folder` afterwards.

    Called again with the same configuration and folder, it goes on where it was interrupted.
    """
    start = time.perf_counter()
    folder = Path(folder)
    device = pick_device(cfg.device)
    options = TrainerOptions(**cfg.trainer)
    dataset = build(cfg, "dataset")
    make_model, make_optimizer, make_scheduler = (
        build(cfg, group) for group in ("model", "optimizer", "scheduler")
    )
    transforms = [fit for fit in (build(cfg, "ewl"), options.standardize and Standardizer.fit) if fit]
    model = try_out(make_model, make_optimizer, make_scheduler, dataset.info)
    is_network = isinstance(model, nn.Module)
    check_options(cfg, options, device, is_network, bool(transforms))

    settings = {group: OmegaConf.to_container(cfg, resolve=True)[group] for group in GROUPS}
    settings["trainer"].pop("workers")  # changes the time a run takes, not its numbers
    claim(folder, model.name, dataset, settings)
    labels = dataset.labels.numpy()
    folds_path = folder / "folds.json"
    if folds_path.exists() or cfg.cv.folds_file:
        folds = load_folds(cfg.cv.folds_file or folds_path, labels, dataset.info.name)
    else:
        groups = duplicate_groups(dataset, progress=True) if cfg.cv.group_duplicates else None
        folds = make_folds(labels, cfg.cv.k, cfg.seed, dataset.info.name, groups, cfg.cv.repeats)
    numbers = range(len(folds.parts)) if cfg.cv.fold is None else [cfg.cv.fold]
    splits = {number: folds.split(number, cfg.cv.validation) for number in numbers}
    folds.save(folds_path)

    metadata = {
        "model": settings["model"],
        "info": asdict(dataset.info),
        "vocabulary": json.loads(dataset.vocabulary.to_json()),
    }
    jobs = [
        FoldJob(
            fold=number,
            seed=cfg.seed,
            split=split,
            folder=folder / f"fold_{number:02d}",
            run=run_fold if is_network else run_kernel_fold,
            make_model=make_model,
            make_optimizer=make_optimizer,
            make_scheduler=make_scheduler,
            options=options,
            device=device,
            metadata=metadata,
            transforms=transforms,
        )
        for number, split in splits.items()
    ]
    epochs = options.epochs if is_network else len(model.penalties)
    with FoldProgress(numbers, epochs) as progress:
        results = run_folds(dataset, jobs, progress, options.workers)

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

    console = Console()
    console.print(summary_table(summary))
    console.print(
        f"{summary['parameters']:,} parameters, {summary['seconds']:.1f} s, in", folder, soft_wrap=True
    )
    return summary


def try_out(make_model, make_optimizer, make_scheduler, info):
    """Build everything once before any fold starts, so that a wrong value is one sentence and not ten."""
    group = "model"
    try:
        model = make_model(info)
        if isinstance(model, nn.Module):
            group = "optimizer"
            optimizer = make_optimizer(model.parameters())
            group = "scheduler"
            make_scheduler(optimizer)
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
    if options.patience and not cfg.cv.validation:
        raise ConfigError("trainer.patience needs a validation part, which this cv has not; use cv=ten_fold")
    if options.precision == "fp16" and device.type == "cpu":
        raise ConfigError("trainer.precision=fp16 needs a GPU; use bf16 on the CPU")
    if not isinstance(cfg.seed, int) or cfg.seed < 0:
        raise ConfigError(f"seed must be a whole number from 0 on, got {cfg.seed!r}")


def claim(folder: Path, model: str, dataset: GraphDataset, settings: dict) -> None:
    """Write down what this run is; a folder that holds another run is refused."""
    path = folder / "run.json"
    run = {"model": model, "dataset": dataset.info.name, "settings": settings, "data_sha256": dataset.digest}
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        differing = [key for key in settings if before["settings"].get(key) != settings[key]]
        if before["data_sha256"] != dataset.digest:
            differing.append("the data")
        if differing:
            raise ConfigError(
                f"{folder} holds a run with other settings ({', '.join(differing)}); use a new folder"
            )
        return
    packages = ("torch", "dgl", "numpy", "hydra-core", "egin-dgl")
    versions = {"python": platform.python_version()} | {name: installed_version(name) for name in packages}
    write_text(path, json.dumps(run | {"versions": versions}, indent=1) + "\n")
