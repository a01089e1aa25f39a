"""history.csv of a fold, one line per epoch in full precision, and predictions.csv of a run, one line per test graph and fold."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path

from egin_dgl.evaluation.history import EpochRecord, History
from egin_dgl.evaluation.summary import Prediction
from egin_dgl.files import write_text


def history_text(history: Iterable[EpochRecord]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    history = list(history)
    columns = [field.name for field in fields(EpochRecord)]
    names = [name for name in columns if any(getattr(record, name) is not None for record in history)]
    writer.writerow(names)
    for record in history:
        # repr round-trips every float; NaN is an empty cell.
        values = (getattr(record, name) for name in names)
        writer.writerow("" if v is None or math.isnan(v) else repr(v) for v in values)
    return text.getvalue()


def read_history(path: str | Path) -> History:
    return parse_history(Path(path).read_text(encoding="utf-8"))


def parse_history(text: str) -> History:
    return [
        EpochRecord(epoch=int(row.pop("epoch")), **{name: float(v or "nan") for name, v in row.items()})
        for row in csv.DictReader(io.StringIO(text))
    ]


def write_predictions(
    path: str | Path, predictions: Iterable[Prediction], ids: Sequence[str], class_names: Sequence[str]
) -> None:
    """Write the names of classes and six digits of each probability; `ids` are those of the graphs."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [f"p_{name}" for name in class_names]
    writer.writerow(["id", "fold", "label", "predicted", *names, "epoch", "chosen_on", "calibrated"])
    for row in predictions:
        found = [f"{value:.6g}" for value in row.probabilities]
        classes = class_names[row.label], class_names[row.predicted]
        selection = row.epoch, row.chosen, str(row.calibrated).lower()
        writer.writerow([ids[row.graph], row.fold, *classes, *found, *selection])
    write_text(path, text.getvalue())
