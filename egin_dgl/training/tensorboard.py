"""TensorBoard logs: one run per fold during training; at the end one run with means, hyper-parameters and figures.

Events are written synchronously with TensorBoard's record writer. All scalars of an epoch are one event (`SummaryWriter`
writes one each, which takes as long as a training step), and a full disk is an error of the call that met it.
"""

import hashlib
import io
import os
import struct
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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

CURVES = {
    "loss/train": "train_loss",
    "loss/validation": "val_loss",
    "loss/test": "test_loss",
}
SCORES = {"train": "train_score", "validation": "val_score", "test": "test_score"}
STEPS = {"optimizer/learning_rate": "lr", "optimizer/gradient_norm": "grad_norm", "time/seconds": "seconds"}
EPSILON = "epsilon/"
EVENTS = "events.out.tfevents."
TENSORS, METADATA = "embeddings/tensors.tsv", "embeddings/metadata.tsv"


def curve_fields(metric: str) -> dict[str, str]:
    """Fields of a record by the tags of their curves; the scores are those of a metric."""
    return CURVES | {f"{metric}/{split}": name for split, name in SCORES.items()}


class EventWriter:
    """Writes an event file into `folder`. On resuming, events written from `first_step` on are hidden."""

    def __init__(self, folder: Path, first_step: int = 1):
        self.folder, self.path = folder, folder / f"{EVENTS}{time.time():.6f}.{os.getpid()}"
        with storage_errors(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self.file = self.path.open("wb", buffering=0)
        self.records = RecordWriter(self.file)
        self.write(file_version="brain.Event:2")
        if first_step > 1:
            self.write(step=first_step, session_log=SessionLog(status=SessionLog.START))

    def write(self, **event: Any) -> None:
        with storage_errors(self.path):
            self.records.write(Event(wall_time=time.time(), **event).SerializeToString())

    def write_scalars(self, values: Mapping[str, float], step: int = 0) -> None:
        scalars = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self.write(summary=Summary(value=scalars), step=step)

    def write_png(self, tag: str, png: bytes) -> None:
        width, height = struct.unpack(">II", png[16:24])  # of the PNG header
        image = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
        self.write(summary=Summary(value=[Summary.Value(tag=tag, image=image)]))

    def close(self) -> None:
        self.file.close()


class FoldLogger(EventWriter):
    """Logs one fold into its directory."""

    def log_epoch(self, record: EpochRecord, epsilons: Mapping[str, float]) -> None:
        tags = curve_fields(record.metric) | STEPS
        scalars = {tag: getattr(record, name) for tag, name in tags.items()}
        if record.C is not None:
            scalars["kernel/C"] = record.C
        scalars |= {f"{EPSILON}{layer}": eps for layer, eps in epsilons.items()}
        defined = {tag: value for tag, value in scalars.items() if value == value}  # not NaN
        self.write_scalars(defined, record.epoch)

    def log_embeddings(self, vectors: Tensor, labels: Tensor, predictions: Tensor, graphs: Indices) -> None:
        """Embeddings of the test set for the projector, each with its graph's number, labels and predictions."""
        tensors, metadata = io.StringIO(), io.StringIO()
        np.savetxt(tensors, vectors.float().numpy(), delimiter="\t", fmt="%.7g")
        columns = [
            np.asarray(graphs)[:, None],
            *(x.reshape(len(x), -1).numpy() for x in (labels, predictions)),
        ]
        numbers = [""] if columns[1].shape[1] == 1 else range(columns[1].shape[1])
        header = ["graph", *(f"{name}{i}" for name in ("label", "predicted") for i in numbers)]
        rows = np.concatenate(columns, axis=1)
        np.savetxt(metadata, rows, delimiter="\t", fmt="%.6g", header="\t".join(header), comments="")
        write_text(self.folder / TENSORS, tensors.getvalue())
        write_text(self.folder / METADATA, metadata.getvalue())


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
    tables = history_tables(histories) | epsilon_tables(folds.values())
    curves, layout = {tag: table.mean(axis=0) for tag, table in tables.items()}, {}
    for tag in (tag for tag in curve_fields(histories[0][0].metric) if tag in tables):
        mean, std = curves[tag], tables[tag].std(axis=0)
        low, high = (f"spread/{tag.replace('/', '_')}/{end}" for end in ("low", "high"))
        curves |= {low: mean - std, high: mean + std}
        layout[tag] = ["Margin", [tag, low, high]]
    for step in range(max(map(len, curves.values()))):
        values = {tag: float(curve[step]) for tag, curve in curves.items() if step < len(curve)}
        writer.write_scalars(values, step + 1)
    writer.write(summary=custom_scalars({"mean ± std over folds": layout}))
    for name, path in pictures.items():
        writer.write_png(name, path.read_bytes())
    writer.write(summary=hparams_pb(hparams, trial_id=trial_name(folder)))
    for name, value in metrics.items():
        writer.write_scalars({name: value})
    writer.close()
    write_projector_config(folder, folds)


def trial_name(folder: Path) -> str:
    """Unique name of a run in the HPARAMS tab, which truncates after 14 characters: `job 3 1f09ac`."""
    number = folder.name.split("_")[0]
    token = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:6]
    return f"job {number} {token}" if number.isdigit() else f"run {token}"


def history_tables(histories: Sequence[History]) -> dict[str, np.ndarray]:
    """(folds, epochs) of each curve without NaN, at the epochs that all folds have reached."""
    reached = min(len(history) for history in histories)
    tables = {
        tag: np.array([[getattr(record, name) for record in history[:reached]] for history in histories])
        for tag, name in (curve_fields(histories[0][0].metric) | STEPS).items()
    }
    tables = {tag: table for tag, table in tables.items() if not np.isnan(table).any()}
    if histories[0][0].C is not None:
        tables["kernel/C"] = np.array([[record.C for record in histories[0]]])
    return tables


def epsilon_tables(folds: Iterable[Path]) -> dict[str, np.ndarray]:
    """The same for each layer's ε, read from the folds' events because histories do not have it."""
    curves: dict[str, dict[Path, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for folder in folds:
        for path in sorted(folder.glob(f"{EVENTS}*")):  # later files win, as a fold may have been resumed
            if EPSILON.encode() not in path.read_bytes():  # searching is fast, parsing is slow
                continue
            for event in EventFileLoader(str(path)).Load():
                for value in event.summary.value:
                    if value.tag.startswith(EPSILON):
                        curves[value.tag][folder][event.step] = value.tensor.float_val[0]
    tables = {}
    for tag, by_fold in curves.items():
        steps = sorted(set.intersection(*map(set, by_fold.values())))
        tables[tag] = np.array([[curve[step] for step in steps] for curve in by_fold.values()])
    return tables


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
