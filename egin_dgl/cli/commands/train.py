"""Cross-validate a model on a dataset: egin train model=egin_e dataset=cuneiform"""

import json
import os
import sys

import hydra
from omegaconf import DictConfig

from egin_dgl import reproducibility
from egin_dgl.cli.config_dirs import conf_dir
from egin_dgl.cli.entrypoint import run_app
from egin_dgl.cli.help import help_page
from egin_dgl.cli.overrides import hydra_arguments, parse_arguments, requested_arithmetic
from egin_dgl.runs.run_dir import COMMAND_VARIABLE


def main() -> None:
    if {"--help", "-h"} & set(sys.argv):
        run_app(print_help, conf_dir(), "train")
    else:
        program = sys.argv[0] if sys.argv[0].startswith("egin ") else f"python {sys.argv[0]}"
        os.environ[COMMAND_VARIABLE] = json.dumps([program, *sys.argv[1:]])
        reproducibility.restart_if_needed(requested_arithmetic(sys.argv[1:]))
        run_app(run_command, conf_dir(), "train")


def print_help() -> None:
    print(help_page(sys.argv[1:], conf_dir(), "train"))


def run_command() -> None:
    """Resume or refit a recorded run, or run what Hydra composes."""
    arguments = parse_arguments(sys.argv[1:])
    if arguments.resume or arguments.run:
        from egin_dgl.cli.resume import refit, resume  # imports torch

        resume(arguments) if arguments.resume else refit(arguments)
    else:
        sys.argv[1:] = hydra_arguments(arguments)
        train_composed()


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="train")
def train_composed(cfg: DictConfig) -> float | None:
    from egin_dgl.cli.jobs import run_composed

    return run_composed(cfg)
