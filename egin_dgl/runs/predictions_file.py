"""predictions.csv of a run: one line per test graph and fold."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from egin_dgl.evaluation.predictions import Prediction
from egin_dgl.files import write_text


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
