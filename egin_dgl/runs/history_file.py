"""history.csv of a fold: one line per epoch, with full precision."""

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from egin_dgl.evaluation.history import EpochRecord, History


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
