"""How many ranks train each fold of a run: `trainer.ranks`."""

from collections.abc import Mapping
from typing import Any

import torch

from egin_dgl.cli.experiment import Experiment
from egin_dgl.data.splits import Split
from egin_dgl.errors import ConfigError
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import Settings
from egin_dgl.training.device import max_workers
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.parallel.rank_processes import torchrun_size
from egin_dgl.training.precise_bn import row_counts
from egin_dgl.training.sklearn_fold import fit_sklearn_fold

LARGE = 2**20  # nodes and edges of a training set that `auto` trains on all cores
MIN_SHARE = (
    64  # graphs of a batch that are worth a rank: at 16 two ranks are no faster than one (benchmark.py ranks)
)


def pick_ranks(
    experiment: Experiment,
    splits: Mapping[int, Split],
    settings: Settings,
    cores: int,
    run: RunDir,
    is_single: bool,
) -> int:
    """The number of ranks, checked and recorded in run.json; `is_single`: there is one split and no cross-validation."""
    if experiment.train is fit_sklearn_fold:
        return 1
    trainer, started = settings["trainer"], torchrun_size()
    requested = trainer.get("ranks", "auto")
    if started and requested not in ("auto", started):
        raise ConfigError(
            f"trainer.ranks={requested} differs from the {started} processes that torchrun started"
        )
    ranks = started or requested
    if ranks == "auto":
        recorded = run.read_record().get("ranks")  # of a run that is resumed: the digits depend on it
        large = is_single and not settings["reproducible"] and is_large(experiment, splits)
        most = min(max_workers(experiment.device) or cores, trainer["batch_size"] // MIN_SHARE)
        ranks = recorded[-1] if recorded else max(1, most) if large else 1
    check_ranks(ranks, experiment.device, splits, trainer["batch_size"], bool(started))
    run.register_ranks(ranks)
    return ranks


def set_ranks(settings: Settings, ranks: str | None) -> Settings:
    """Settings of a directory with the `trainer.ranks` of the command, if it has one."""
    if ranks is None:
        return settings
    given: dict[str, Any] = {"ranks": int(ranks) if ranks.isdecimal() else ranks}
    return settings | {"trainer": settings["trainer"] | {"ranks": TrainerOptions(**given).ranks}}


def is_large(experiment: Experiment, splits: Mapping[int, Split]) -> bool:
    rows = row_counts(experiment.dataset, torch.arange(len(experiment.dataset)))
    return all(int(rows[torch.as_tensor(split.train)].sum()) >= LARGE for split in splits.values())


def check_ranks(
    ranks: int, device: torch.device, splits: Mapping[int, Split], batch_size: int, by_torchrun: bool
) -> None:
    """Refuse more ranks than there are graphs for, or GPUs."""
    smallest = min(batch_size, *(len(split.train) for split in splits.values()))
    if ranks > smallest:
        raise ConfigError(
            f"trainer.ranks={ranks} needs as many graphs in a batch, and trainer.batch_size and the training set give {smallest}"
        )
    if ranks > 1 and device.type == "cuda" and not by_torchrun and ranks > (max_workers(device) or 1):
        raise ConfigError(f"trainer.ranks={ranks} needs as many GPUs, and device={device} has fewer")
