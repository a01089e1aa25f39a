"""What a trained run says about graphs."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Predictions:
    """Class probabilities of G graphs: the mean over the folds that were asked, and how far the folds disagree."""

    ids: Sequence[str]
    class_names: tuple[str, ...]
    probabilities: Tensor  # (G, classes) double
    spread: Tensor  # (G, classes): standard deviation over folds, 0 of a single one
    calibrated: bool

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        told = "calibrated" if self.calibrated else "not calibrated"
        return f"Predictions({len(self)} graphs, classes {', '.join(self.class_names[:10])}, {told})"

    @property
    def predicted(self) -> list[str]:
        """The likeliest class of each graph, under the name that the training data gave it."""
        return [self.class_names[number] for number in self.probabilities.argmax(dim=1).tolist()]

    def to_frame(self) -> pd.DataFrame:
        """A row a graph: id, predicted, and of each class its probability p_ and spread std_."""
        columns: dict[str, object] = {"id": list(self.ids), "predicted": self.predicted}
        for prefix, values in (("p_", self.probabilities), ("std_", self.spread)):
            columns |= {f"{prefix}{name}": values[:, i].numpy() for i, name in enumerate(self.class_names)}
        return pd.DataFrame(columns)
