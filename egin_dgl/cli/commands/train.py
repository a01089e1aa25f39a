"""Cross-validate a model on a dataset: egin train model=egin_e dataset=cuneiform"""

import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig

from egin_dgl import arithmetic
from egin_dgl.cli import door
from egin_dgl.cli.help import help_page
from egin_dgl.cli.shipped import conf_folder
from egin_dgl.cli.words import with_those_resumed
from egin_dgl.loading import loading
from egin_dgl.training.cores import Share
from egin_dgl.training.forking import start_server


def main() -> None:
    if {"--help", "-h"} & set(sys.argv):
        door.enter(show_help, conf_folder(), "train")
    else:
        arithmetic.start(with_those_resumed(sys.argv[1:]))
        door.enter(train_as_composed, conf_folder(), "train")


def show_help() -> None:
    print(help_page(sys.argv[1:], conf_folder(), "train"))


@hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name="train")
def train_as_composed(cfg: DictConfig) -> float | None:
    def job(folder: Path, share: Share) -> dict:
        if arithmetic.computes(cfg.get("reproducible", False)) and several_workers(cfg, share):
            start_server()  # it loads torch and DGL while this process does
        with loading():
            from egin_dgl.cli import app

        return app.train(cfg, folder, share)

    return door.guarded(cfg, job)


def several_workers(cfg: DictConfig, share: Share) -> bool:
    """Whether folds will, by all appearances, be trained side by side; what is wrong is told later."""
    one_fold = isinstance(cfg.get("cv", {}).get("fold"), int)
    return not one_fold and (cfg.get("trainer", {}).get("workers") or share.workers) != 1
