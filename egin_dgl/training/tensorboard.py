"""TensorBoard logs: one run per fold during training; at the end one run with means, hyper-parameters and figures.

Events are written synchronously with TensorBoard's record writer. All scalars of an epoch are one event (`SummaryWriter`
writes one each, which takes as long as a training step), and a full disk is an error of the call that met it.
"""

import hashlib
import io
import os
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from google.protobuf import text_format
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.record_writer import RecordWriter
from torch import Tensor

from egin_dgl.data.dataset import Indices
from egin_dgl.evaluation.history import EpochRecord, History
from egin_dgl.files import storage_errors, write_text

Band: TypeAlias = tuple[np.ndarray, np.ndarray]  # mean and standard deviation per epoch

CURVES = {
    "loss/train": "train_loss",
    "loss/validation": "val_loss",
    "loss/test": "test_loss",
    "accuracy/train": "train_accuracy",
    "accuracy/validation": "val_accuracy",
    "accuracy/test": "test_accuracy",
}
STEPS = {"optimizer/learning_rate": "lr", "optimizer/gradient_norm": "grad_norm", "time/seconds": "seconds"}
EPSILON = "epsilon/"
EVENTS = "events.out.tfevents."
TENSORS, METADATA = "embeddings/tensors.tsv", "embeddings/metadata.tsv"


class EventWriter:
    """Writes an event file into `folder`. On resuming, `purge_step` hides events written from that step on."""

    def __init__(self, folder: Path, purge_step: int | None = None):
        self.path = folder / f"{EVENTS}{time.time():.6f}.{os.getpid()}"
        with storage_errors(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self.file = self.path.open("wb", buffering=0)
        self.records = RecordWriter(self.file)
        self.add_event(Event(file_version="brain.Event:2"))
        if purge_step is not None:
            self.add_event(Event(step=purge_step, session_log=SessionLog(status=SessionLog.START)))

    def add_event(self, event: Event) -> None:
        event.wall_time = time.time()
        with storage_errors(self.path):
            self.records.write(event.SerializeToString())

    def add_summary(self, summary: Summary, step: int = 0) -> None:
        self.add_event(Event(summary=summary, step=step))

    def add_scalars(self, values: Mapping[str, float], step: int = 0) -> None:
        scalars = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self.add_summary(Summary(value=scalars), step)

    def add_png(self, tag: str, png: bytes) -> None:
        width, height = struct.unpack(">II", png[16:24])  # of the PNG header
        image = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
        self.add_summary(Summary(value=[Summary.Value(tag=tag, image=image)]))

    def close(self) -> None:
        self.file.close()


class FoldLogger:
    """Logs one fold into its directory."""

    def __init__(self, folder: Path, first_epoch: int = 1):
        self.folder = folder
        self.writer = EventWriter(folder, purge_step=first_epoch if first_epoch > 1 else None)

    def log_epoch(self, record: EpochRecord, epsilons: Mapping[str, float]) -> None:
        scalars = {tag: getattr(record, name) for tag, name in (CURVES | STEPS).items()}
        if record.C is not None:
            scalars["kernel/C"] = record.C
        scalars |= {f"{EPSILON}{layer}": eps for layer, eps in epsilons.items()}
        defined = {tag: value for tag, value in scalars.items() if value == value}  # not NaN
        self.writer.add_scalars(defined, record.epoch)

    def log_embeddings(self, vectors: Tensor, labels: Tensor, predictions: Tensor, graphs: Indices) -> None:
        """Embeddings of the test set for the projector, each with its graph's number, label and prediction."""
        text = io.StringIO()
        np.savetxt(text, vectors.float().numpy(), delimiter="\t", fmt="%.7g")
        write_text(self.folder / TENSORS, text.getvalue())
        rows = [
            f"{graph}\t{label}\t{predicted}"
            for graph, label, predicted in zip(
                np.asarray(graphs).tolist(), labels.tolist(), predictions.tolist(), strict=True
            )
        ]
        write_text(self.folder / METADATA, "\n".join(["graph\tlabel\tpredicted", *rows, ""]))

    def close(self) -> None:
        self.writer.close()


def log_run(
    folder: Path,
    folds: Mapping[str, Path],
    histories: Sequence[History],
    hparams: dict,
    metrics: Mapping[str, float],
    pictures: Mapping[str, Path],
) -> None:
    """Log across folds: mean and spread of each curve, hyper-parameters with final metrics, figures and embeddings.

    The mean of a curve has the tag that the curve has in the folds.
    """
    from torch.utils.tensorboard.summary import custom_scalars  # slow to import, needed at the end only

    writer = EventWriter(folder)
    bands = mean_curves(histories) | epsilon_means(folds.values())
    curves, layout = {tag: mean for tag, (mean, _) in bands.items()}, {}
    for tag in (tag for tag in CURVES if tag in bands):
        mean, std = bands[tag]
        low, high = (f"spread/{tag.replace('/', '_')}/{end}" for end in ("low", "high"))
        curves |= {low: mean - std, high: mean + std}
        layout[tag] = ["Margin", [tag, low, high]]
    for step in range(max(map(len, curves.values()))):
        values = {tag: float(curve[step]) for tag, curve in curves.items() if step < len(curve)}
        writer.add_scalars(values, step + 1)
    writer.add_summary(custom_scalars({"mean ± std over folds": layout}))
    for name, path in pictures.items():
        writer.add_png(name, path.read_bytes())
    writer.add_summary(hparams_pb(hparams, trial_id=trial_name(folder)))
    for name, value in metrics.items():
        writer.add_scalars({name: value})
    writer.close()
    write_projector_config(folder, folds)


def trial_name(folder: Path) -> str:
    """Unique name of a run in the HPARAMS tab, which truncates after 14 characters: `job 3 1f09ac`."""
    number = folder.name.split("_")[0]
    token = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:6]
    return f"job {number} {token}" if number.isdigit() else f"run {token}"


def mean_curves(histories: Sequence[History]) -> dict[str, Band]:
    """Mean and standard deviation over folds, at the epochs that all folds have reached."""
    reached = min(len(history) for history in histories)
    bands = {}
    for tag, name in (CURVES | STEPS).items():
        curves = np.array([[getattr(record, name) for record in history[:reached]] for history in histories])
        if not np.isnan(curves).any():
            bands[tag] = curves.mean(axis=0), curves.std(axis=0)
    if histories[0][0].C is not None:
        penalties = np.array([record.C for record in histories[0]])
        bands["kernel/C"] = penalties, 0 * penalties
    return bands


def epsilon_means(folds: Iterable[Path]) -> dict[str, Band]:
    """The same for each layer's ε, read from the folds' events because histories do not have it."""
    curves: dict[str, list[dict[int, float]]] = {}
    for folder in folds:
        for tag, curve in epsilon_curves(folder).items():
            curves.setdefault(tag, []).append(curve)
    bands = {}
    for tag, fold_curves in curves.items():
        steps = sorted(set.intersection(*map(set, fold_curves)))
        table = np.array([[curve[step] for step in steps] for curve in fold_curves])
        bands[tag] = table.mean(axis=0), table.std(axis=0)
    return bands


def epsilon_curves(folder: Path) -> dict[str, dict[int, float]]:
    """ε of one fold by tag and step; later files win, as a fold may have been resumed."""
    curves: dict[str, dict[int, float]] = {}
    for path in sorted(folder.glob(f"{EVENTS}*")):
        if EPSILON.encode() not in path.read_bytes():  # searching is fast, parsing is slow
            continue
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if value.tag.startswith(EPSILON):
                    curves.setdefault(value.tag, {})[event.step] = value.tensor.float_val[0]
    return curves


def write_projector_config(folder: Path, folds: Mapping[str, Path]) -> None:
    """List the embeddings of all folds, each under the name of its fold."""
    config = ProjectorConfig()
    for name, fold in folds.items():
        if (fold / TENSORS).is_file():
            tensors, metadata = (str((fold / file).relative_to(folder)) for file in (TENSORS, METADATA))
            config.embeddings.add(tensor_name=name, tensor_path=tensors, metadata_path=metadata)
    if config.embeddings:
        write_text(folder / "projector_config.pbtxt", text_format.MessageToString(config))


def remove_fold_events(folds: Iterable[Path]) -> None:
    """Remove the events of finished folds and their candidates, so that a sweep is one TensorBoard run per job.

    TensorBoard selects no run at its start if there are more than forty.
    """
    for folder in folds:
        for path in folder.rglob(f"{EVENTS}*"):
            path.unlink()
