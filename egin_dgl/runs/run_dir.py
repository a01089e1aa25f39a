"""The directory of a run.

run.json                  what the run is: settings, overrides, versions, processor; written before training
folds.json                the fold of each graph
fold_00, fold_01, …       one directory per fold
predictions.csv           predictions of each fold for its test set
curves.png, …             pictures, also as SVG
summary.json              results; written last
card.md                   a model card
error.txt                 the error of a failed job of a sweep
train.log                 the log
.hydra/                   Hydra's notes on the command; never read
.lock                     held by the process that trains here
"""

import csv
import io
import json
import logging
import os
import platform
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeGuard

from filelock import FileLock, Timeout

from egin_dgl import reproducibility
from egin_dgl.backend import installed_version
from egin_dgl.errors import ConfigError, escape_control, escape_strings
from egin_dgl.files import remove_temporary_files, save_figure, storage_errors, write_text
from egin_dgl.runs.json_files import json_checksum, write_object
from egin_dgl.runs.settings import FileIn, RunSpec, Settings, result_settings

if TYPE_CHECKING:  # slow to import
    from matplotlib.figure import Figure

    from egin_dgl.data.dataset import DatasetInfo
    from egin_dgl.evaluation.summary import Prediction
    from egin_dgl.runs.fold_dir import FoldDir

log = logging.getLogger(__name__)

# Program and arguments as typed, a JSON list that jobs in other processes inherit.
COMMAND_VARIABLE = "EGIN_COMMAND"
PACKAGES = ("torch", "dgl", "numpy", "hydra-core", "egin-dgl")
SETTINGS_CHECKSUM = "settings_crc32"


@dataclass(frozen=True)
class RunDir:
    """Files of one run."""

    path: Path  # need not exist yet

    run_json = FileIn("run.json")
    folds = FileIn("folds.json")
    summary = FileIn("summary.json")
    predictions = FileIn("predictions.csv")
    card = FileIn("card.md")
    error = FileIn("error.txt")
    log_file = FileIn("train.log")

    @property
    def exists(self) -> bool:
        return self.run_json.is_file()

    @property
    def has_ended(self) -> bool:
        return self.summary.exists() or self.error.exists()

    def fold(self, number: int) -> "FoldDir":
        from egin_dgl.runs.fold_dir import FoldDir  # imports torch, which reading the settings does not need

        return FoldDir(self.path / f"fold_{number:02d}", number)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Exclude other processes, which would overwrite the folds, and remove what killed ones left behind."""
        lock = FileLock(self.path / ".lock")
        try:
            with storage_errors(lock.lock_file):
                lock.acquire(timeout=0)
        except Timeout:
            raise ConfigError(f"another process is at work in {self.path}") from None
        try:
            for path in (self.path, *self.path.glob("fold_*"), *self.path.glob("fold_*/grid_*")):
                remove_temporary_files(path)
            yield
        finally:
            lock.release()

    def register(self, spec: RunSpec, **extra: object) -> None:
        """Write run.json, or check that the one here has the same settings."""
        if self.exists:
            self.check_settings(spec.settings)
            self.warn_other_arithmetic(spec.settings["reproducible"])
            return
        versions = {"python": platform.python_version()}
        versions |= {name: installed_version(name) for name in PACKAGES}
        model, dataset = (spec.choices.get(name, "?") for name in ("model", "dataset"))
        labels = {"model": model, "dataset": str(spec.settings["dataset"].get("name") or dataset)}
        content = {**labels, **spec.to_json(), **extra, "data_sha256": None, "versions": versions}
        content |= {
            "arithmetic": reproducibility.describe_arithmetic(),
            SETTINGS_CHECKSUM: json_checksum(spec.settings),
        }
        if command := os.environ.get(COMMAND_VARIABLE):
            content["command"] = json.loads(command)
        write_object(self.run_json, content, sealed=False)

    def register_data(self, model: str, dataset: str, digest: str) -> None:
        """Add the names for tables and the hash of the data, or check that the data is the same."""
        content = self.read_record()
        if content["data_sha256"] not in (None, digest):
            raise ConfigError(f"{self.path} holds a run on other data; use a new directory")
        known = content | {"model": model, "dataset": dataset, "data_sha256": digest}
        if known != content:
            write_object(self.run_json, known, sealed=False)

    def register_ranks(self, ranks: int) -> None:
        """Add the number of ranks that train, one entry for each number that has trained."""
        content = self.read_record()
        past = content.get("ranks", [])
        if past and past[-1] != ranks:
            log.warning(
                "this run was trained with trainer.ranks=%d and resumes with %d: its digits differ from those of an "
                "uninterrupted run",
                past[-1],
                ranks,
            )
        if past[-1:] != [ranks]:
            write_object(self.run_json, content | {"ranks": [*past, ranks]}, sealed=False)

    def check_settings(self, settings: Settings) -> None:
        """Refuse settings other than those of the run here."""
        past, now = result_settings(self.read_record()["settings"]), result_settings(settings)
        if differing := ", ".join(key for key in now if past.get(key) != now[key]):
            raise ConfigError(
                f"{self.path} holds a run with other settings ({differing}); use a new directory"
            )

    def warn_other_arithmetic(self, reproducible: str | Literal[False]) -> None:
        here, there = reproducibility.describe_arithmetic(), self.read_record().get("arithmetic")
        if reproducible or there in (None, here):
            return
        log.warning(
            "this run began on %s and resumes on %s: its last digits may differ from those of an uninterrupted run, "
            "which reproducible=any prevents",
            reproducibility.format_arithmetic(there) if is_described(there) else "another machine",
            reproducibility.format_arithmetic(here),
        )

    def read_record(self) -> dict:
        from egin_dgl.runs.schemas import RunRecord, read_object  # imports pydantic

        try:
            content = read_object(self.run_json, RunRecord)
            if content.get(SETTINGS_CHECKSUM) not in (None, json_checksum(content["settings"])):
                raise ConfigError(f"{self.run_json}: damaged (the checksum of the settings does not match)")
            return content
        except ConfigError as error:
            raise ConfigError(
                f"{error}; remove it and type the options of the run again, with hydra.run.dir={self.path}"
            ) from error

    def load_spec(self) -> RunSpec:
        """Return the recorded settings. They are data of unknown origin: validate them before use."""
        return RunSpec.from_json(self.read_record())

    def load_finished(self, settings: Settings) -> dict | None:
        """Return the summary if the run with these settings has finished here, else None."""
        if not self.summary.exists() or not self.exists:
            return None
        if result_settings(self.read_record()["settings"]) != result_settings(settings):
            return None
        from egin_dgl.runs.schemas import RefitSummary, RunSummary, read_object  # imports pydantic

        try:
            summary = read_object(self.summary, RefitSummary if settings["cv"].get("refit") else RunSummary)
            found = self.checksums()
            if changed := [name for name, value in summary["files"].items() if found.get(name) != value]:
                raise ConfigError(f"{self.path}: changed since the run ended: {', '.join(changed)}")
        except ConfigError as error:
            log.warning("%s; what can be made from the folds is made again", escape_control(error))
            return None
        return escape_strings(summary)  # it is printed

    def load_temperature(self) -> float | None:
        """Return the temperature of all folds; None if the run is unfinished, has no validation sets, or is a refit."""
        from egin_dgl.runs.schemas import Calibrated, read_object  # imports pydantic

        if not self.summary.exists():
            return None
        calibration = read_object(self.summary, Calibrated).get("calibration")
        return calibration and calibration["temperature"]

    def checksums(self) -> dict[str, int]:
        """The checksum of each file that a finished run vouches for, by its name."""
        patterns = (
            "predictions.csv",
            "*.png",
            "*.svg",
            "fold_*/last.pt",
            "fold_*/best.safetensors",
            "fold_*/history.csv",
        )
        files = sorted(path for pattern in patterns for path in self.path.glob(pattern))
        return {str(path.relative_to(self.path)): zlib.crc32(path.read_bytes()) for path in files}

    def save_picture(self, name: str, picture: "Figure") -> Path:
        """Write the picture as PNG and SVG; return the path of the PNG."""
        return save_figure(self.path / name, picture)

    def save_predictions(
        self, predictions: Iterable["Prediction"], ids: Sequence[str], info: "DatasetInfo"
    ) -> None:
        """Write predictions.csv: targets and predictions in six digits; `ids` are those of the graphs."""
        from egin_dgl.tasks import TASKS

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        task = TASKS[info.task]
        targets, predicted = task.columns(info)
        writer.writerow(["id", "fold", *targets, *predicted, "epoch", "chosen_on", "calibrated"])
        for row in predictions:
            cells = task.true_cells(row.label, info)
            cells += task.predicted_cells(task.predict(row.logits, row.temperature), info)
            selection = row.epoch, row.chosen, str(row.temperature is not None).lower()
            writer.writerow([ids[row.graph], row.fold, *cells, *selection])
        write_text(self.predictions, text.getvalue())

    def finish(self, summary: dict) -> None:
        """Write summary.json; a run without it is unfinished."""
        write_object(self.summary, summary | {"files": self.checksums()})


def is_described(arithmetic: object) -> TypeGuard[dict]:
    """Return whether this is what `reproducibility.describe_arithmetic` returned."""
    return isinstance(arithmetic, dict) and {"processor", "capability", "flags"} <= arithmetic.keys()
