"""Cross-validate a model on a dataset: egin train model=egin_e dataset=cuneiform"""

import json
import os
import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig

from egin_dgl import arithmetic
from egin_dgl.cli import entrypoint
from egin_dgl.cli.help import help_page
from egin_dgl.cli.overrides import with_those_resumed
from egin_dgl.cli.paths import conf_dir
from egin_dgl.imports import gc_disabled
from egin_dgl.runs.run_dir import COMMAND_VARIABLE
from egin_dgl.training.parallel.forkserver import start_forkserver
from egin_dgl.training.parallel.resources import CpuBudget


def main() -> None:
    if {"--help", "-h"} & set(sys.argv):
        entrypoint.run_app(show_help, conf_dir(), "train")
    else:
        program = sys.argv[0] if sys.argv[0].startswith("egin ") else f"python {sys.argv[0]}"
        os.environ[COMMAND_VARIABLE] = json.dumps([program, *sys.argv[1:]])
        arithmetic.start(with_those_resumed(sys.argv[1:]))
        entrypoint.run_app(train_as_composed, conf_dir(), "train")


def show_help() -> None:
    print(help_page(sys.argv[1:], conf_dir(), "train"))


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="train")
def train_as_composed(cfg: DictConfig) -> float | None:
    def job(folder: Path, share: CpuBudget) -> dict:
        if arithmetic.computes(cfg.get("reproducible", False)) and several_workers(cfg, share):
            start_forkserver()  # it loads torch and DGL while this process does
        with gc_disabled():
            from egin_dgl.cli import app

        return app.train(cfg, folder, share)

    return entrypoint.run_job(cfg, job)


def several_workers(cfg: DictConfig, share: CpuBudget) -> bool:
    """Whether folds will, by all appearances, be trained side by side; what is wrong is told later."""
    one_fold = isinstance(cfg.get("cv", {}).get("fold"), int)
    return not one_fold and (cfg.get("trainer", {}).get("workers") or share.workers) != 1
