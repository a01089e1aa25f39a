"""Cross-validate a model on a dataset: egin train model=egin_e dataset=cuneiform"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from egin_dgl import reproducibility
from egin_dgl.backend import gc_disabled
from egin_dgl.cli.config_dirs import CONFIG_NAME, conf_dir
from egin_dgl.cli.entrypoint import exit_on_error
from egin_dgl.cli.error_messages import check_overrides
from egin_dgl.cli.help import help_page
from egin_dgl.cli.overrides import TrainArguments, hydra_arguments, parse_arguments, requested_arithmetic
from egin_dgl.cli.sweep import run_in_sweep, search_value
from egin_dgl.runs.run_dir import COMMAND_VARIABLE, RunDir
from egin_dgl.runs.sweep_dir import SweepDir
from egin_dgl.training.parallel.processes import start_forkserver, started_by_torchrun
from egin_dgl.training.parallel.resources import CpuBudget, cores, cpu_budget

# Arguments with which a command may train no folds in parallel.
UNUSUAL = (
    *("-", "hydra.mode=", "hydra/", "experiment=", "dry_run=", "cv=", "cv.fold="),
    *("trainer.fold_workers=", "trainer.ranks="),
)


def main() -> None:
    """Print the help, resume or refit a recorded run, or run what Hydra composes."""
    if {"--help", "-h"} & set(sys.argv):
        print(help_page(sys.argv[1:]))
        return
    check_overrides(sys.argv[1:])
    program = sys.argv[0] if sys.argv[0].startswith("egin ") else f"python {sys.argv[0]}"
    os.environ[COMMAND_VARIABLE] = json.dumps([program, *sys.argv[1:]])
    reproducibility.restart_if_needed(requested_arithmetic(sys.argv[1:]))
    arguments = parse_arguments(sys.argv[1:])
    # Hydra raises an error instead of printing it in many lines, and the Pythons of workers and launchers import nothing
    # from the working directory, which may be anybody's.
    with reproducibility.environment({"HYDRA_FULL_ERROR": "1", "PYTHONSAFEPATH": "1"}):
        if not started_by_torchrun():
            run_command(arguments)
            return
        from egin_dgl.training.parallel.rank_processes import join_torchrun  # imports torch

        with join_torchrun() as is_first:
            if is_first:
                run_command(arguments)


def run_command(arguments: TrainArguments) -> None:
    if arguments.resume or arguments.run:
        from egin_dgl.cli.resume import refit, resume  # imports torch

        resume(arguments) if arguments.resume else refit(arguments)
    else:
        start_workers_early(arguments.overrides)
        sys.argv[1:] = hydra_arguments(arguments)
        train_composed()


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=CONFIG_NAME)
def train_composed(cfg: DictConfig) -> float | None:
    """Run what Hydra composed, in Hydra's output directory; return the value that a search maximizes."""
    config = HydraConfig.get()
    run, sweep = RunDir(Path(config.runtime.output_dir)), SweepDir(Path(config.sweep.dir))
    budget = cpu_budget(config.launcher, config.sweep.dir)
    start_workers(cfg, budget)
    with gc_disabled(), exit_on_error():  # DGL may fail to import
        from egin_dgl.cli.app import train
        from egin_dgl.cli.validation import make_spec

    def job() -> dict:
        return train(make_spec(cfg, config), run.path, budget)

    if config.mode != RunMode.MULTIRUN:
        with exit_on_error(), run.lock():
            return job()["validation_score"]
    record = sweep.load()
    summary = run_in_sweep(sweep, run, config.job.num, len(record), job)
    return search_value(summary) if record.is_search else summary["validation_score"]


def start_workers_early(overrides: Sequence[str]) -> None:
    """Start the forkserver before Hydra composes, which takes 0.2 s, where folds will certainly be trained in parallel.

    Otherwise `start_workers` decides from the settings.
    """
    if len(cores()) > 1 and not any(word.startswith(UNUSUAL) for word in overrides):
        start_forkserver()


def start_workers(cfg: DictConfig, budget: CpuBudget) -> None:
    """Start the forkserver, if folds or ranks will be trained in parallel: it imports torch and DGL while this process does."""
    trainer = cfg.get("trainer", {})
    several_ranks = trainer.get("ranks") not in ("auto", None, 1) and not started_by_torchrun()
    one_fold = isinstance(cfg.get("cv", {}).get("fold"), int)
    workers = trainer.get("fold_workers") or budget.workers
    parallel = several_ranks or not one_fold and workers != 1
    if parallel and reproducibility.is_active(cfg.get("reproducible", False)):
        start_forkserver()
