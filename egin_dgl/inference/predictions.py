"""Predictions of a run for graphs."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Predictions:
    """Class probabilities of G graphs: mean and standard deviation over the models of the folds."""

    ids: Sequence[str]
    class_names: tuple[str, ...]
    probabilities: Tensor  # (G, classes) double
    std: Tensor  # (G, classes); 0 for a single model
    calibrated: bool

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        state = "calibrated" if self.calibrated else "not calibrated"
        return f"Predictions({len(self)} graphs, classes {', '.join(self.class_names[:10])}, {state})"

    @property
    def predicted(self) -> list[str]:
        """The most probable class of each graph, by its name in the training data."""
        return [self.class_names[number] for number in self.probabilities.argmax(dim=1).tolist()]

    def to_frame(self) -> pd.DataFrame:
        """A row per graph: id, predicted, and for each class its probability p_NAME and standard deviation std_NAME."""
        columns: dict[str, object] = {"id": list(self.ids), "predicted": self.predicted}
        for prefix, values in (("p_", self.probabilities), ("std_", self.std)):
            columns |= {f"{prefix}{name}": values[:, i].numpy() for i, name in enumerate(self.class_names)}
        return pd.DataFrame(columns)
