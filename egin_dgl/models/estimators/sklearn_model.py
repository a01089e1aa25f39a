"""The interface of models that scikit-learn fits: kernel machines and forests."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from torch import Tensor

from egin_dgl.data.dataset import DatasetInfo, GraphDataset, Indices

if TYPE_CHECKING:  # slow to import; networks need none of it
    from scipy import sparse

Arrays = Mapping[str, np.ndarray]  # saved in safetensors
Predictor = TypeVar("Predictor")


class Features(Protocol):
    """Graphs → rows (G, F) of counts, whose columns are fitted to training graphs."""

    @property
    def size(self) -> int: ...  # F
    def fit_transform(self, graphs: Any) -> "sparse.csr_array": ...
    def transform(self, graphs: Any) -> "sparse.csr_array": ...
    def arrays(self) -> Arrays: ...
    def load(self, arrays: Arrays) -> None: ...


class Machine(Protocol):
    """What scikit-learn fitted to rows, as plain arrays."""

    @property
    def parameters(self) -> int: ...  # their number
    def outputs(self, rows: "sparse.csr_array") -> Tensor: ...  # (G, outputs), as of a network
    def arrays(self) -> Arrays: ...


class SklearnModel(ABC):
    """Not a network: it has no weights to start from and no epochs. It is fitted at once, for each of its `candidates`.

    ``dataset → read → features (G, F) → machine → outputs (G, outputs)``
    """

    name: str  # in tables
    has_probabilities: ClassVar[bool]  # whether outputs are logits of probabilities; decision values are not
    # Values of the penalty C, each of which has a row in the history; None: a model without a penalty.
    candidates: Sequence[float | None] = (None,)

    def __init__(self, info: DatasetInfo):
        self.info = info

    def check_dataset(self, dataset: GraphDataset) -> None:  # noqa: B027
        """Raise a `ConfigError` for a dataset that lacks what the model reads; most read any graphs."""

    @abstractmethod
    def read(self, dataset: GraphDataset, indices: Indices | None = None) -> object:
        """The graphs `indices` (default: all) in the form that the features take."""

    @abstractmethod
    def make_features(self) -> Features:
        """Features that are not fitted yet."""

    @abstractmethod
    def fit(
        self,
        rows: "sparse.csr_array",
        targets: np.ndarray,
        candidate: float | None,
        seed: int,
        balanced: bool = False,
    ) -> Machine:
        """Fit to targets: classes (G,), or labels or standardised values (G, T) with NaN where missing.

        `balanced` weights classes by their frequency.
        """

    @abstractmethod
    def load_machine(self, arrays: Arrays, num_features: int) -> Machine:
        """Restore the arrays of a machine on rows (G, num_features); they may come from anybody, so that invalid ones raise."""

    def load(self, arrays: Arrays) -> "FittedModel":
        """Restore the arrays of a fitted model."""
        features = self.make_features()
        features.load(arrays)
        return FittedModel(self, features, self.load_machine(arrays, features.size))


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model with its fitted features and machine."""

    model: SklearnModel
    features: Features
    machine: Machine

    def outputs(self, dataset: GraphDataset) -> Tensor:
        return self.machine.outputs(self.features.transform(self.model.read(dataset)))

    def arrays(self) -> Arrays:
        return {**self.features.arrays(), **self.machine.arrays()}


def fit_each_target(
    fit: Callable[["sparse.csr_array", np.ndarray], Predictor],
    constant: Callable[[float], Predictor],
    rows: "sparse.csr_array",
    targets: np.ndarray,
) -> list[Predictor]:
    """Fit one predictor per column of targets (G, T), to the graphs that have the target.

    `constant` makes the predictor of a target with a single value in the training set; NaN for one without any.
    """
    fitted = []
    for column in targets.T:
        known = np.flatnonzero(~np.isnan(column))
        values = column[known]
        if len(np.unique(values)) > 1:
            fitted.append(fit(rows[known], values))
        else:
            fitted.append(constant(float(values[0]) if len(values) else np.nan))
    return fitted
