"""A fitted support vector machine on colour counts as plain arrays, for saving and prediction.

The kernel is a dot product of counts, so an SVM on it is a set of linear functions of the counts: one for two classes,
else one for each class (`LinearSVC`) or for each pair of classes, which vote (`SVC`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from torch import Tensor, from_numpy

from egin_dgl.errors import DataError
from egin_dgl.ewl.color_table import ColorTable, Signatures
from egin_dgl.ewl.inputs import GraphSet
from egin_dgl.ewl.kernel import WLKernel

SIGNATURE_FIELDS = ("own", "offsets", "neighbor", "edge")


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """A fitted kernel and the linear functions of its counts.

    Args:
        kernel: The fitted kernel.
        coefficients: :math:`(F, colours)`.
        intercepts: :math:`(F,)`.
        classes: Numbers of the classes of the training graphs.
        by_pairs: Whether there is one function for each pair of classes.
    """

    kernel: WLKernel
    coefficients: np.ndarray
    intercepts: np.ndarray
    classes: np.ndarray
    by_pairs: bool

    @classmethod
    def from_pipeline(cls, kernel: WLKernel, machine: Pipeline) -> "KernelMachine":
        """The fitted steps of `make_svm`."""
        svm = machine[-1]
        by_pairs = isinstance(svm, SVC)
        coefficients = _pair_coefficients(svm, machine["gram"].rows_) if by_pairs else svm.coef_
        return cls(kernel, coefficients, svm.intercept_, svm.classes_, by_pairs)

    def logits(self, graphs: GraphSet, classes: int) -> Tensor:
        """Decision values as logits, (G, classes)."""
        return self.logits_from_counts(self.kernel.transform(graphs), classes)

    def logits_from_counts(self, counts: sparse.csr_array, classes: int) -> Tensor:
        decision = counts @ self.coefficients.T + self.intercepts
        if decision.shape[1] == 1:
            decision = decision[:, 0]
        elif self.by_pairs:
            decision = _vote(decision, len(self.classes))
        return _to_logits(decision, self.classes, classes)

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays of the machine, without the options of the kernel."""
        table = self.kernel.table_
        found = {"coefficients": self.coefficients, "intercepts": self.intercepts, "classes": self.classes}
        found |= {"by_pairs": np.array(self.by_pairs)}
        found |= {"node_labels": table.node_labels, "edge_labels": table.edge_labels}
        for depth, level in enumerate(table.levels, start=1):
            found |= {f"depth{depth}.{name}": getattr(level, name) for name in SIGNATURE_FIELDS}
        return found

    @classmethod
    def from_arrays(cls, kernel: WLKernel, arrays: Mapping[str, np.ndarray]) -> "KernelMachine":
        """Restore the result of `arrays`, with an unfitted kernel of the same options."""
        try:
            levels = [
                Signatures(**{name: arrays[f"depth{depth}.{name}"] for name in SIGNATURE_FIELDS})
                for depth in range(1, kernel.depth + 1)
            ]
            kernel.table_ = ColorTable(kernel.method, arrays["node_labels"], arrays["edge_labels"], levels)
            functions = arrays["coefficients"], arrays["intercepts"], arrays["classes"]
            return cls(kernel, *functions, bool(arrays["by_pairs"]))
        except KeyError as error:
            raise DataError(f"not a saved kernel machine: {error} is missing") from None


def _pair_coefficients(svm: SVC, rows: sparse.csr_array) -> np.ndarray:
    """Linear functions of an `SVC`, one row for each pair i < j: Σ over support vectors of dual coefficient × counts.

    The dual coefficients of a support vector of class i are in row j − 1, those of class j in row i.
    """
    support, ends = rows[svm.support_], np.cumsum(svm.n_support_)
    if len(svm.classes_) == 2:
        return np.asarray(svm.dual_coef_ @ support)
    of_class = [slice(end - size, end) for end, size in zip(ends, svm.n_support_, strict=True)]
    dual = svm.dual_coef_
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
