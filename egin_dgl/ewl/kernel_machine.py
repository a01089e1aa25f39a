"""A fitted support vector machine on colour counts, as plain arrays: what is saved of it, and what answers for new graphs.

The kernel is a dot product of counts, so that every machine on it is a few linear functions of them: one for two classes,
else one a class (`LinearSVC`) or one a pair of classes, which then vote (`SVC`).
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
from egin_dgl.ewl.inputs import GraphSet
from egin_dgl.ewl.kernel import WLKernel
from egin_dgl.ewl.signatures import ColorTable, Signatures

LEVEL = ("own", "offsets", "neighbor", "edge")  # the arrays of one depth of a table


@dataclass(frozen=True, eq=False)
class KernelMachine:
    kernel: WLKernel  # fitted
    coefficients: np.ndarray  # (functions, colours)
    intercepts: np.ndarray  # (functions,)
    classes: np.ndarray  # (c,) numbers of the classes that the training graphs have
    by_pairs: bool

    @classmethod
    def of(cls, kernel: WLKernel, machine: Pipeline) -> "KernelMachine":
        """What the steps of `make_svm` after the kernel have learnt."""
        svm = machine[-1]
        by_pairs = isinstance(svm, SVC)
        coefficients = pair_coefficients(svm, machine["gram"].rows_) if by_pairs else svm.coef_
        return cls(kernel, coefficients, svm.intercept_, svm.classes_, by_pairs)

    def scores(self, graphs: GraphSet, classes: int) -> Tensor:
        """Scores (G, classes) of graphs by their decision values."""
        decision = self.kernel.transform(graphs) @ self.coefficients.T + self.intercepts
        if decision.shape[1] == 1:
            decision = decision[:, 0]
        elif self.by_pairs:
            decision = votes(decision, len(self.classes))
        return class_scores(decision, self.classes, classes)

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it but the options of the kernel."""
        table = self.kernel.table_
        found = {"coefficients": self.coefficients, "intercepts": self.intercepts, "classes": self.classes}
        found |= {"by_pairs": np.array(self.by_pairs)}
        found |= {"node_labels": table.node_labels, "edge_labels": table.edge_labels}
        for depth, level in enumerate(table.levels, start=1):
            found |= {f"depth{depth}.{name}": getattr(level, name) for name in LEVEL}
        return found

    @classmethod
    def from_arrays(cls, kernel: WLKernel, arrays: Mapping[str, np.ndarray]) -> "KernelMachine":
        """The machine that `arrays` described, with a kernel of the same options."""
        try:
            levels = [
                Signatures(**{name: arrays[f"depth{depth}.{name}"] for name in LEVEL})
                for depth in range(1, kernel.depth + 1)
            ]
            kernel.table_ = ColorTable(kernel.method, arrays["node_labels"], arrays["edge_labels"], levels)
            functions = arrays["coefficients"], arrays["intercepts"], arrays["classes"]
            return cls(kernel, *functions, bool(arrays["by_pairs"]))
        except KeyError as error:
            raise DataError(f"this is not a saved kernel machine: it has no {error}") from None


def pair_coefficients(svm: SVC, rows: sparse.csr_array) -> np.ndarray:
    """The linear functions behind an `SVC`: Σ over support vectors of dual coefficient × counts, a row a pair i < j.

    The dual coefficients of a support vector of class i are in row j − 1, and of one of class j in row i.
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


def votes(decision: np.ndarray, classes: int) -> np.ndarray:
    """One value a class from one a pair: wins, and within a third of a win the sum of margins, as scikit-learn has it."""
    wins, margins = (np.zeros((len(decision), classes)) for _ in range(2))
    for value, (i, j) in zip(decision.T, combinations(range(classes), 2), strict=True):
        wins[:, i] += value >= 0
        wins[:, j] += value < 0
        margins[:, i] += value
        margins[:, j] -= value
    return wins + margins / (3 * (np.abs(margins) + 1))


def class_scores(decision: np.ndarray, known: np.ndarray, classes: int) -> Tensor:
    """Decision values, (G,) of two known classes or (G, known), as (G, classes); an unknown class has less than any."""
    if decision.ndim == 1:  # two classes share one value
        decision = np.stack([-decision, decision], axis=1)
    scores = np.repeat(decision.min(axis=1, keepdims=True) - 1, classes, axis=1)
    scores[:, known] = decision
    return from_numpy(scores).float()
