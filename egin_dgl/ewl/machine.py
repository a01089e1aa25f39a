"""KernelMachine: fitted support vector machines as plain arrays, for saving and prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from torch import Tensor, from_numpy

from egin_dgl.errors import DataError


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """Linear functions of colour counts.

    Of classes there is one function for two classes, else one for each class (`LinearSVC`) or, if `by_pairs`, one for each
    pair of classes, which vote (`SVC`). Of other targets, where `num_classes` is 0, there is one for each.
    """

    coefficients: np.ndarray  # (F, colours)
    intercepts: np.ndarray  # (F,)
    classes: np.ndarray  # numbers of the classes of the training graphs
    by_pairs: bool
    num_classes: int  # of the dataset

    @classmethod
    def from_pipeline(cls, machine: Pipeline, num_classes: int) -> "KernelMachine":
        """The fitted steps of `make_svm`, without its kernel, for classes."""
        svm = machine[-1]
        by_pairs = isinstance(svm, SVC)
        coefficients = _pair_coefficients(svm, machine["gram"].rows_) if by_pairs else svm.coef_
        return cls(coefficients, svm.intercept_, svm.classes_, by_pairs, num_classes)

    @classmethod
    def from_functions(cls, functions: Sequence[tuple[np.ndarray, float]]) -> "KernelMachine":
        """One function for each target, see `linear_function`."""
        coefficients, intercepts = zip(*functions, strict=True)
        none = np.zeros(0, dtype=np.int64)
        return cls(np.stack(coefficients), np.array(intercepts), none, by_pairs=False, num_classes=0)

    @property
    def parameters(self) -> int:
        """Number of coefficients, for pairs of classes that of one function for each class."""
        functions = self.num_classes if self.num_classes > 2 else len(self.coefficients)
        return self.coefficients.shape[1] * functions

    def outputs(self, counts: sparse.csr_array) -> Tensor:
        """Decision values as logits (G, classes), or one value for each target (G, T)."""
        decision = counts @ self.coefficients.T + self.intercepts
        if not self.num_classes:
            return from_numpy(decision)
        if decision.shape[1] == 1:
            decision = decision[:, 0]
        elif self.by_pairs:
            decision = _vote(decision, len(self.classes))
        return _to_logits(decision, self.classes, self.num_classes)

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "coefficients": self.coefficients,
            "intercepts": self.intercepts,
            "classes": self.classes,
            "by_pairs": np.array(self.by_pairs),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], num_classes: int, colors: int) -> "KernelMachine":
        """Restore the result of `arrays`."""
        try:
            functions = arrays["coefficients"], arrays["intercepts"], arrays["classes"]
            if functions[0].ndim != 2 or functions[0].shape != (len(functions[1]), colors):
                raise DataError(
                    f"not a saved kernel machine: coefficients {functions[0].shape}, {colors} colours"
                )
            return cls(*functions, bool(arrays["by_pairs"]), num_classes)
        except KeyError as error:
            raise DataError(f"not a saved kernel machine: {error} is missing") from None


def linear_function(machine: Pipeline) -> tuple[np.ndarray, float]:
    """Coefficients (colours,) and intercept of the fitted steps of `make_svm`, for two classes or for values."""
    svm = machine[-1]
    if "gram" in machine.named_steps:
        support = machine["gram"].rows_[svm.support_]
        return np.asarray(svm.dual_coef_ @ support).reshape(-1), float(svm.intercept_[0])
    return np.ravel(svm.coef_), float(np.ravel(svm.intercept_)[0])


def _pair_coefficients(svm: SVC, rows: sparse.csr_array) -> np.ndarray:
    """Linear functions of an `SVC`, one row for each pair i < j: Σ over support vectors of dual coefficient × counts.

    The dual coefficients of a support vector of class i are in row j − 1, those of class j in row i.
    """
    support, ends, dual = rows[svm.support_], np.cumsum(svm.n_support_), svm.dual_coef_
    if len(svm.classes_) == 2:
        return np.asarray(dual @ support)
    of_class = [slice(end - size, end) for end, size in zip(ends, svm.n_support_, strict=True)]
    found = []
    for i, j in combinations(range(len(svm.classes_)), 2):
        first, second = of_class[i], of_class[j]
        found.append(dual[j - 1, first] @ support[first] + dual[i, second] @ support[second])
    return np.array(found)


def _vote(decision: np.ndarray, classes: int) -> np.ndarray:
    """One value for each class: its wins, and the sum of margins as a tie-breaker below 1/3, as in scikit-learn."""
    wins, margins = (np.zeros((len(decision), classes)) for _ in range(2))
    for value, (i, j) in zip(decision.T, combinations(range(classes), 2), strict=True):
        wins[:, i] += value >= 0
        wins[:, j] += value < 0
        margins[:, i] += value
        margins[:, j] -= value
    return wins + margins / (3 * (np.abs(margins) + 1))


def _to_logits(decision: np.ndarray, known: np.ndarray, classes: int) -> Tensor:
    """Decision values, (G,) of two classes or (G, known), as (G, classes); classes without training graphs are lowest."""
    if decision.ndim == 1:
        decision = np.stack([-decision, decision], axis=1)
    logits = np.repeat(decision.min(axis=1, keepdims=True) - 1, classes, axis=1)
    logits[:, known] = decision
    return from_numpy(logits).float()
