"""Nonsense on the command line: misspelt names, values of other kinds, broken grammar."""

import json
import os
import string
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from unittest.mock import patch

from omegaconf import OmegaConf

from attacks.attempts import Fall, attempt
from attacks.directories import refuse_to_train
from attacks.mutations import CANARY, VALUES
from egin_dgl import reproducibility
from egin_dgl.cli import app
from egin_dgl.cli.commands import train
from egin_dgl.cli.config_dirs import compose_config
from egin_dgl.cli.main import main

CHARACTERS = string.ascii_letters + string.digits + "=.,:;[]{}()'\"\\$@+~*/ -_%&!?#<>|²é∞"
SMALL = ["dataset=bonds", "dataset.graphs=12", "cv.k=3", "trainer.fold_workers=1"]
# They name a place to fetch from, other processes to run in, or have a long answer: all legitimate if the user typed them.
LEGITIMATE = ("dataset.url", "reproducible", "trainer.fold_workers")
OTHER_COMMANDS = {
    "predict": ["run", "input", "out", "fold", "device", "trust", "strict", "embeddings", "at_once"],
    "explain": ["run", "input", "out", "fold", "device", "graph", "by"],
    "table": ["--metric", "--protocol", "--compare", "--paper", "--output", "outputs"],
    "ewl": ["audit", "compare", "draw", "--depth", "dataset=bonds", "dataset.graphs=12"],
}


class NonsenseOptions:
    """Commands run in this process, in a directory of their own, up to the training of folds."""

    def __init__(self, run: Path, place: Path):
        self.run, self.place = run, place
        cfg = OmegaConf.to_container(compose_config(SMALL))
        self.names = [name for name in list_names(cfg) if name not in LEGITIMATE]

    def __call__(self, random: Random) -> None:
        command = random.choice(["train"] * 3 + list(OTHER_COMMANDS))
        arguments = self.train_arguments(random) if command == "train" else self.others(command, random)
        here = self.place / "here"
        here.mkdir(exist_ok=True)
        try:
            with (
                patch.object(app, "train_folds", refuse_to_train),
                patch.object(train, "start_forkserver", lambda: None),
                patch.object(reproducibility, "restart_if_needed", lambda _: None),
                patch.dict(os.environ, {"EGIN_CACHE": str(self.place / "cache"), "COLUMNS": "200"}),
            ):
                attempt(lambda: call(here, [command, *arguments]), self.place)
        except Exception as error:
            raise Fall(f"egin {command} {arguments!r}: {error!r}") from error

    def train_arguments(self, random: Random) -> list[str]:
        multirun = ["-m"] if random.random() < 0.15 else []
        names = self.names + [
            "resume",
            "run",
            "trust",
            "hydra.sweep.subdir",
            "hydra.job.name",
            "hydra/launcher",
        ]
        return [*multirun, *SMALL, *(nonsense(random, names) for _ in range(random.choice((1, 1, 2))))]

    def others(self, command: str, random: Random) -> list[str]:
        names = OTHER_COMMANDS[command]
        if command in ("predict", "explain"):
            known = [
                f"run={self.run}",
                f"input={random.choice((self.run, self.place / 'none.csv'))}",
                "graph=0",
            ]
            return [*known[: 2 + (command == "explain")], nonsense(random, [n for n in names if n != "out"])]
        first = [str(self.run)] if command == "table" else ["audit", "dataset=bonds", "dataset.graphs=12"]
        return [
            *random.sample(first, random.randint(0, len(first))),
            random.choice(names),
            value_text(random),
        ]


def call(here: Path, arguments: list[str]) -> None:
    os.chdir(here)
    sys.argv[:] = ["egin", *arguments]
    main()


def nonsense(random: Random, names: list[str]) -> str:
    """An option with a wrong name, a wrong value, or both."""
    name = random.choice(names)
    way = random.randrange(5)
    if way == 0:
        return "".join(random.choices(CHARACTERS, k=random.randint(1, 12)))
    if way == 1:
        place = random.randrange(len(name))
        name = name[:place] + random.choice(CHARACTERS) + name[place + random.randint(0, 1) :]
    return f"{random.choice(['', '', '', '+', '++', '~'])}{name}={value_text(random)}"


def value_text(random: Random) -> str:
    value = random.choice(VALUES)
    if random.random() < 0.3:
        return "".join(random.choices(CHARACTERS, k=random.randint(0, 8)))
    if isinstance(value, str):  # an argument has no NUL and is no path that is written to
        return value.replace(CANARY, "nowhere").replace("\x00", "")
    return json.dumps(value).replace(CANARY, "nowhere")


def list_names(content: object, prefix: str = "") -> Iterator[str]:
    for name, value in content.items() if isinstance(content, dict) else ():
        yield f"{prefix}{name}"
        yield from list_names(value, f"{prefix}{name}.")
