"""What a directory made by somebody else could name to run code, to write elsewhere, or to fetch."""

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attacks.attempts import Fall
from attacks.directories import WEIGHTS, try_routes
from attacks.mutations import CANARY
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import Settings

TARGETS = [
    "os.mkdir",
    "torch.load",
    "hydra.utils.instantiate",
    "builtins.eval",
    "torch.optim.adam.torch.load",  # begins like an optimizer
    "egin_dgl.models.registry.import_module",
    "egin_dgl.data.dataset.Path.touch",
    "egin_dgl.files.write_text",
    "egin_dgl.models.model.nn.Module",  # a class, but not a model
    "antigravity",
    None,
    5,
    "egin_dgl..models",
    {"_target_": "os.mkdir"},
]
CALL = {"_target_": "os.mkdir", "path": "CANARY"}
SETTINGS: list[tuple[str, Any]] = [
    *(("model._target_", target) for target in TARGETS),
    *((f"{group}._target_", "os.mkdir") for group in ("dataset", "optimizer", "scheduler", "ewl", "trainer")),
    ("optimizer._target_", "egin_dgl.models.EGIN"),  # registered, but as another kind
    ("model", CALL),
    ("model.readout", CALL),
    ("model.readout", [CALL]),
    ("model.readout", "${oc.env:HOME}"),
    ("model._args_", ["CANARY"]),
    ("trainer.batch_size", "${oc.env:HOME}"),
    ("seed", "${oc.env:HOME}"),
    ("dataset.url", "http://127.0.0.1:9/CANARY"),
    ("cv.grid", {"model": {"_target_": ["os.mkdir"]}}),
    ("cv.grid", {"model": {"x._target_": ["os.mkdir"], "x._args_": [["CANARY"]]}}),
    ("hydra", {"callbacks": {"x": CALL}}),
    ("evil", 1),
]
JOB_NAMES = ("../canary", "..", "", CANARY, "a/../../canary")


def with_value(settings: Settings, option: str, value: object, canary: Path | str) -> Settings:
    """Settings with one changed option."""
    changed = copy.deepcopy(settings)
    group, _, name = option.rpartition(".")
    value = json.loads(json.dumps(value).replace("CANARY", str(canary)))
    (changed[group] if group else changed)[name] = value
    return changed


def foreign_metadata(good: dict, canary: Path | str) -> Iterator[dict]:
    """What weights could say of their model."""
    for target in TARGETS:
        yield {"model": {"_target_": target, "path": str(canary), "name": str(canary)}}
    yield {"model": good["model"] | {"readout": {"_target_": "os.mkdir", "path": str(canary)}}}
    yield {"model": good["model"] | {"_args_": [str(canary)]}}
    yield {"model": good["model"] | {"readout": "${oc.env:HOME}"}}
    for name in ("model", "info", "transforms", "vocabulary"):
        yield from ({name: wrong} for wrong in ([1], "text", 5, {"os.mkdir": str(canary)}))
    for wrong in (-3, "x", 10**12, None):
        yield {"info": good["info"] | {"node_dim": wrong}}


class ForeignDirectories:
    """Copies of a finished run, each with one such change, which must be refused."""

    def __init__(self, run: Path, place: Path):
        self.run, self.place = run, place
        tensors, metadata = FoldDir(run / "fold_00", 0).load_tensors()
        self.tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        self.spec = RunDir(run).load_spec()
        changes: list[tuple[str, Callable[[Path], None], tuple[str, ...]]] = []
        for option, value in SETTINGS:
            settings = with_value(self.spec.settings, option, value, CANARY)
            change = self.record_change({"settings": settings})
            changes.append((f"run.json, {option}={value!r}", change, ("resume", "refit")))
        for wrong in foreign_metadata(metadata, CANARY):
            change = self.weights_change(metadata | wrong)
            changes.append((f"{WEIGHTS}, {wrong!r}", change, ("predict",)))
        for name in JOB_NAMES:
            changes.append((f"sweep.json, job {name!r}", self.sweep_change(name), ("resume",)))
        elsewhere = self.record_change({"refit_of": str(run)})
        changes.append(("run.json, a refit of another run", elsewhere, ("resume",)))
        for name in ("fold_07", "train.log", "refit"):
            change = self.link_change(name)
            changes.append((f"{name}, a link that leads out", change, ("resume", "refit", "predict")))
        self.changes = [
            (f"{route}: {what}", change, route) for what, change, routes in changes for route in routes
        ]

    def __len__(self) -> int:
        return len(self.changes)

    def __call__(self, number: int) -> None:
        what, change, route = self.changes[number % len(self)]
        path = self.place / "run"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.run, path)
        change(path)
        (message,) = try_routes(path, self.place, (route,))
        if message is None or Path(CANARY).exists() or "reached the training" in message:
            raise Fall(f"{what}: not refused, but {message or 'a result'}")

    def record_change(self, more: dict) -> Callable[[Path], None]:
        def change(path: Path) -> None:
            record = json.loads((path / "run.json").read_bytes()) | more
            record.pop("settings_crc32")
            (path / "run.json").write_text(json.dumps(record))

        return change

    def weights_change(self, metadata: dict) -> Callable[[Path], None]:
        return lambda path: FoldDir(path / "fold_00", 0).save_tensors(self.tensors, metadata)

    def sweep_change(self, name: str) -> Callable[[Path], None]:
        def change(path: Path) -> None:
            jobs = [{"name": one, **self.spec.to_json()} for one in ("0_gin", name)]
            (path / "sweep.json").write_text(json.dumps({"jobs": jobs, "trials": None}))

        return change

    def link_change(self, name: str) -> Callable[[Path], None]:
        def change(path: Path) -> None:
            (path / name).unlink(missing_ok=True)
            (path / name).symlink_to(CANARY)

        return change
