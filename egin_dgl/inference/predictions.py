"""Predictions for graphs, and tables of them that keep the rows and columns they were read from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch import Tensor

from egin_dgl.data.arrays import SourceRows
from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.errors import DataError
from egin_dgl.tasks import TASKS, Task
from egin_dgl.tasks.task import per_target

REASON = "reason"  # column that says why a row has no prediction


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities or values of G graphs: mean and standard deviation over models."""

    ids: Sequence[str]
    info: DatasetInfo  # of the training data
    values: Tensor  # (G, outputs) double: probabilities of classes or labels, or values in the units of the targets
    std: Tensor | None  # (G, outputs); None for a single model
    calibrated: bool
    quantiles: Tensor | None = None  # (T,) of conformal intervals or label sets; None: without

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        info = self.info
        what = f"classes {', '.join(info.class_names[:10])}"
        what = what if info.classes else f"targets {', '.join(info.target_names[:10])}"
        return f"Predictions({len(self)} graphs, {what})"

    @property
    def task(self) -> type[Task]:
        return TASKS[self.info.task]

    @property
    def logits(self) -> Tensor:
        """Decoded outputs with these values, which metrics take."""
        return self.task.to_logits(self.values)

    def to_columns(self) -> dict[str, list]:
        """Columns of a table: those of the task, standard deviations over models, intervals or label sets."""
        columns = self.task.frame_columns(self.values, self.info)
        if self.std is not None:
            info = self.info
            names = [f"std_{name}" for name in info.class_names] or per_target("std", info)
            columns |= dict(zip(names, self.std.T.tolist(), strict=True))
        if self.quantiles is not None:
            columns |= self.task.conformal_columns(self.values, self.quantiles, self.info)
        return columns

    def to_frame(self, rows: SourceRows | None = None, labels: Tensor | None = None) -> pd.DataFrame:
        """A row per graph, with its id; or the `rows` it was read from, with all their columns, and blanks where it was not.

        `labels` are the known targets of graphs without rows.
        """
        if rows is not None:
            return add_columns(rows, self.to_columns())
        columns: dict[str, list] = {"id": list(self.ids)}
        if labels is not None:
            cells = [self.task.true_cells(label, self.info) for label in labels]
            names = self.task.columns(self.info)[0]
            columns |= {name: [row[i] for row in cells] for i, name in enumerate(names)}
        return pd.DataFrame(columns | self.to_columns())


def add_columns(rows: SourceRows, columns: Mapping[str, Sequence]) -> pd.DataFrame:
    """The columns of rows, then columns of their graphs, blank where there is no graph, then the reason if there may be none.

    A column whose name is taken is called NAME_2.
    """
    frame = dict(rows.columns)
    missing = rows.graph < 0
    for name, values in columns.items():
        column = pd.Series(values, dtype=None if len(values) else object)
        frame[unused_name(name, frame)] = column.reindex(
            np.where(missing, len(values), rows.graph)
        ).to_numpy()
    if rows.reasons:
        frame[unused_name(REASON, frame)] = np.array(rows.reasons, dtype=object)
    return pd.DataFrame(frame)


def unused_name(name: str, taken: Mapping[str, object]) -> str:
    number, found = 2, name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def concat_frames(frames: Sequence[pd.DataFrame], graphs: object) -> pd.DataFrame:
    """Frames of chunks as one, with the index of the frame or column that they were read from."""
    if not frames:
        raise DataError("there are no graphs")
    whole = pd.concat(frames, ignore_index=True)
    return whole.set_index(graphs.index) if isinstance(graphs, (pd.DataFrame, pd.Series)) else whole
