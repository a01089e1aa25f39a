"""TensorBoard: a run per fold while it trains; in the end one for all, with means, hyper-parameters and pictures."""

import hashlib
import os
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np
from google.protobuf import text_format
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from egin_dgl.data.dataset import Indices
from egin_dgl.evaluation.history import EpochRecord, History
from egin_dgl.files import storage_errors, write_text

Band: TypeAlias = tuple[np.ndarray, np.ndarray]  # mean and standard deviation, a value an epoch

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
EVENTS, PROJECTOR = "events.out.tfevents.*", "projector_config.pbtxt"  # TensorBoard's own names


class FoldLogger:
    """Writes the events of one fold into its folder; of a resumed fold, later steps written before are purged."""

    def __init__(self, folder: Path, first_epoch: int = 1):
        self.folder = folder
        with writing_events(folder):
            self.writer = SummaryWriter(str(folder), purge_step=first_epoch if first_epoch > 1 else None)

    def epoch(self, record: EpochRecord, epsilons: dict[str, float]) -> None:
        scalars = {tag: getattr(record, name) for tag, name in (CURVES | STEPS).items()}
        if record.C is not None:  # which penalty this step is: steps are whole numbers
            scalars["kernel/C"] = record.C
        scalars |= {f"{EPSILON}{layer}": eps for layer, eps in epsilons.items()}
        known = {tag: value for tag, value in scalars.items() if value == value}  # NaN: no such part
        with writing_events(self.folder):
            write_scalars(self.writer, known, record.epoch)

    def embeddings(self, vectors: Tensor, labels: Tensor, predictions: Tensor, graphs: Indices) -> None:
        """The test part for the projector, each point with its graph's number, class and prediction."""
        rows = [[str(int(v)) for v in row] for row in zip(graphs, labels, predictions, strict=True)]
        header = ["graph", "label", "predicted"]
        with writing_events(self.folder):
            self.writer.add_embedding(vectors, rows, metadata_header=header, tag="test")

    def close(self) -> None:
        with writing_events(self.folder):
            self.writer.close()


@contextmanager
def writing_events(folder: Path) -> Iterator[None]:
    """A full disk is told as for any other file, and once: the writer's thread keeps its error for the next call."""
    threading.excepthook = told_by_the_caller
    with storage_errors(folder / "events.out.tfevents"):
        yield


def told_by_the_caller(failure: threading.ExceptHookArgs) -> None:
    if type(failure.thread).__name__ != "_AsyncWriterThread":
        threading.__excepthook__(failure)


def log_run(
    folder: Path,
    folds: Mapping[str, Path],
    histories: Sequence[History],
    hparams: dict,
    metrics: dict,
    pictures: Mapping[str, Path],
) -> None:
    """Across folds: mean and spread of each curve, hyper-parameters with the final metrics, pictures (PNG), and the
    embeddings of all folds, which are named. The mean of a curve has the name that it has in the folds."""
    with writing_events(folder), SummaryWriter(str(folder)) as writer:
        means = mean_curves(histories) | epsilon_means(folds.values())
        curves, layout = {tag: mean for tag, (mean, _) in means.items()}, {}
        for tag in (tag for tag in CURVES if tag in means):
            mean, std = means[tag]
            band = [f"spread/{tag.replace('/', '_')}/{end}" for end in ("low", "high")]
            curves |= dict(zip(band, (mean - std, mean + std), strict=True))
            layout[tag] = ["Margin", [tag, *band]]
        for step in range(max(map(len, curves.values()))):
            at_step = {tag: float(values[step]) for tag, values in curves.items() if step < len(values)}
            write_scalars(writer, at_step, step + 1)
        writer.add_custom_scalars({"mean ± std over folds": layout})
        for name, path in pictures.items():
            writer._get_file_writer().add_summary(picture_of(name, path.read_bytes()), 0)
        # Of hyper-parameters only this run's own: TensorBoard then finds out which differ, and shows them first.
        writer._get_file_writer().add_summary(hparams_pb(hparams, trial_id=trial_name(folder)))
        for name, value in metrics.items():
            writer.add_scalar(name, value)
    join_embeddings(folder, folds)


def picture_of(tag: str, png: bytes) -> Summary:
    """A picture as it is on disk: `add_figure` would draw it a second time."""
    width, height = struct.unpack(">II", png[16:24])  # where PNG has them
    image = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
    return Summary(value=[Summary.Value(tag=tag, image=image)])


def trial_name(folder: Path) -> str:
    """Of a run among others in the HPARAMS tab, which cuts what is longer than fourteen letters and takes runs of one name
    for one: `job 3 1f09ac`."""
    number = folder.name.split("_")[0]
    token = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:6]
    return f"job {number} {token}" if number.isdigit() else f"run {token}"


def mean_curves(histories: Sequence[History]) -> dict[str, Band]:
    """Mean and standard deviation over folds, at the epochs that all have reached."""
    reached = min(len(history) for history in histories)
    found = {}
    for tag, name in (CURVES | STEPS).items():
        curves = np.array([[getattr(record, name) for record in history[:reached]] for history in histories])
        if not np.isnan(curves).any():
            found[tag] = curves.mean(axis=0), curves.std(axis=0)
    if histories[0][0].C is not None:
        penalties = np.array([record.C for record in histories[0]])
        found["kernel/C"] = penalties, 0 * penalties
    return found


def epsilon_means(folds: Iterable[Path]) -> dict[str, Band]:
    """The same of each layer's ε, which histories do not have, from the events of the folds; none where these are gone."""
    curves: dict[str, list[dict[int, float]]] = {}
    for folder in folds:
        for tag, curve in epsilon_curves(folder).items():
            curves.setdefault(tag, []).append(curve)
    bands = {}
    for tag, of_folds in curves.items():
        reached = sorted(set.intersection(*map(set, of_folds)))
        table = np.array([[curve[step] for step in reached] for curve in of_folds])
        bands[tag] = table.mean(axis=0), table.std(axis=0)
    return bands


def epsilon_curves(folder: Path) -> dict[str, dict[int, float]]:
    """Of one fold: tags, and the value at each step; what was written last counts, as a fold may be resumed."""
    curves: dict[str, dict[int, float]] = {}
    for path in sorted(folder.glob(EVENTS)):
        if EPSILON.encode() not in path.read_bytes():  # to look is quick, to parse is not
            continue
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if value.tag.startswith(EPSILON):
                    curves.setdefault(value.tag, {})[event.step] = value.tensor.float_val[0]
    return curves


def write_scalars(writer: SummaryWriter, values: Mapping[str, float], step: int) -> None:
    """All in one event: `add_scalar` makes one of each, which takes as long as a step of training."""
    summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
    writer._get_file_writer().add_summary(summary, step)


def join_embeddings(folder: Path, folds: Mapping[str, Path]) -> None:
    """The embeddings of the folds as those of the run, each by the name of its fold."""
    joined = ProjectorConfig()
    for name, place in folds.items():
        if (place / PROJECTOR).is_file():
            for one in text_format.Parse((place / PROJECTOR).read_text(), ProjectorConfig()).embeddings:
                one.tensor_name = name
                one.tensor_path = str((place / one.tensor_path).relative_to(folder))
                one.metadata_path = str((place / one.metadata_path).relative_to(folder))
                joined.embeddings.append(one)
    if joined.embeddings:
        write_text(folder / PROJECTOR, text_format.MessageToString(joined))


def forget_folds(folds: Iterable[Path]) -> None:
    """Take away the events of folds whose run has ended, those of candidates too: a sweep then is one run a job, and
    TensorBoard, which ticks no run where there are more than forty, opens with curves in it."""
    for folder in folds:
        for path in folder.rglob(EVENTS):
            path.unlink()


def plain(settings: dict, prefix: str = "") -> dict[str, bool | float | str]:
    """Nested settings as the flat ones TensorBoard takes: model.hidden_dim → 64.

    What is not set, or says only where code and data come from, is left out: a table of a sweep has a column for each.
    """
    flat: dict[str, bool | float | str] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= plain(value, f"{prefix}{key}.")
        elif isinstance(value, (bool, int, float, str)) and not key.startswith("_"):
            flat[f"{prefix}{key}"] = value
    return flat
