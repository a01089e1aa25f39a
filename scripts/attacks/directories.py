"""Run and sweep directories that are damaged, or made by somebody else."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from attacks.attempts import Fall, attempt
from attacks.mutations import flip_bit, mutate_json
from egin_dgl.cli import app
from egin_dgl.cli.overrides import parse_arguments
from egin_dgl.cli.refit import plan_refit
from egin_dgl.cli.resume import resume
from egin_dgl.data import GraphDataset
from egin_dgl.errors import TrainingError
from egin_dgl.inference.trained_run import load_run
from egin_dgl.reporting.many_runs.report import make_report
from egin_dgl.runs.fold_dir import FoldDir, read_history
from egin_dgl.runs.reader import find_runs
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir, SweepJob, SweepRecord

ROUTES: dict[str, Callable[[Path], object]] = {
    "resume": lambda path: resume(parse_arguments([f"resume={path}"])),
    "refit": lambda path: plan_refit(RunDir(path)),
    "predict": load_run,
    "table": lambda path: str(make_report(find_runs([path]))),
}
WEIGHTS = "fold_00/best.safetensors"
FILES = {
    **dict.fromkeys(("run.json", "folds.json", "summary.json"), tuple(ROUTES)),
    WEIGHTS: ("predict",),
    "sweep.json": ("resume",),
}  # what is mutated, and the commands that read it
UNREAD = (".lock", ".log", ".hydra", "tfevents", "embeddings", "projector")  # by no command of ours


def refuse_to_train(*_: object, **__: object) -> None:
    raise TrainingError("reached the training of folds")


def try_routes(path: Path, place: Path, routes: tuple[str, ...] = tuple(ROUTES)) -> list[str | None]:
    """Run these commands on a directory up to the training of folds; return the sentence of each that was refused."""
    messages = []
    for name in routes:
        with patch.object(app, "train_folds", refuse_to_train):
            try:
                messages.append(attempt(partial(ROUTES[name], path), place))
            except Exception as error:
                raise Fall(f"{name}: {error!r}") from error
    return messages


class MutatedDirectories:
    """Copies of a finished run, and of a sweep of two, with keys and values of one file changed."""

    def __init__(self, run: Path, place: Path):
        self.run, self.place = run, place
        self.spec = RunDir(run).load_spec()
        tensors, self.metadata = FoldDir(run / "fold_00", 0).load_tensors()
        self.tensors = {name: tensor.clone() for name, tensor in tensors.items()}

    def __call__(self, random: Random, file: str | None = None) -> None:
        file = file or random.choice(list(FILES))
        path = self.place / "sweep" if file == "sweep.json" else self.place / "run"
        shutil.rmtree(path, ignore_errors=True)
        if file == "sweep.json":
            jobs = [SweepJob(f"{number}_gin", self.spec) for number in range(2)]
            SweepDir(path).register(SweepRecord(jobs))
        else:
            shutil.copytree(self.run, path)
        changed = self.mutate(path, file, random)
        for route in FILES[file]:
            try:
                try_routes(path, self.place, (route,))
            except Fall as fall:
                raise Fall(f"{fall}; {file}: {json.dumps(changed)[:2000]}") from fall

    def mutate(self, path: Path, file: str, random: Random) -> Any:
        if file == WEIGHTS:
            changed = mutate_json(self.metadata, random)
            FoldDir(path / "fold_00", 0).save_tensors(self.tensors, changed)
        else:
            changed = mutate_json(json.loads((path / file).read_bytes()), random)
            (path / file).write_text(json.dumps(changed))
        return changed


class FlippedBits:
    """Copies of a finished run with one bit of one file flipped: the same numbers, or a sentence."""

    def __init__(self, run: Path, place: Path, dataset: GraphDataset):
        self.run, self.place, self.dataset = run, place, dataset
        self.files = sorted(
            path.relative_to(run)
            for path in run.rglob("*")
            if path.is_file()
            and path.stat().st_size
            and not any(name in str(path.relative_to(run)) for name in UNREAD)
        )
        self.predictions = load_run(run).predict(dataset)

    def __call__(self, random: Random, route: str | None = None) -> None:
        file, route = random.choice(self.files), route or random.choice(("resume", "predict"))
        path = self.place / "run"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.run, path)
        content = (path / file).read_bytes()
        place, bit = random.randrange(len(content)), random.randrange(8)
        (path / file).write_bytes(flip_bit(content, place, bit))
        try:
            self.resume(path) if route == "resume" else self.predict(path)
        except Exception as error:
            raise Fall(f"{route} with bit {bit} of byte {place} of {file} flipped: {error!r}") from error

    def resume(self, path: Path) -> None:
        if attempt(partial(ROUTES["resume"], path), self.place) is None and (
            found := find_difference(self.run, path)
        ):
            raise Fall(f"it gave other numbers: {found}")

    def predict(self, path: Path) -> None:
        found: list = []
        message = attempt(lambda: found.append(load_run(path).predict(self.dataset)), self.place)
        if message is None and not found[0].equals(self.predictions):
            raise Fall("it gave other predictions")


def find_difference(one: Path, two: Path) -> str | None:
    """The first file with other numbers, times apart; None if two runs agree in every digit."""
    left, right = (json.loads((path / "summary.json").read_text()) for path in (one, two))
    for name in ("protocols", "metrics", "validation_score"):
        if repr(left[name]) != repr(right[name]):
            return f"summary.json, {name}"
    for path in (*sorted(one.glob("fold_*/history.csv")), one / "predictions.csv"):
        name = path.relative_to(one)
        if not (two / name).exists() or read_numbers(one / name) != read_numbers(two / name):
            return str(name)
    return None


def read_numbers(path: Path) -> str:
    if path.name != "history.csv":
        return path.read_text()
    return repr([record.__dict__ | {"seconds": 0} for record in read_history(path)])
