"""The Weisfeiler-Lehman subtree kernel with (E-WL) or without (1-WL) edge labels, and support vector machines on it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, from_numpy

from egin_dgl.errors import ConfigError, DataError
from egin_dgl.ewl.color_vocabulary import UNSEEN, ColorVocabulary, Signatures
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.ewl.refinement import color_counts, refine


class WLKernel(TransformerMixin, BaseEstimator):
    r"""Counts of the colours of each graph at the depths 0..depth; the kernel is their dot product.

    .. math:: k(G, H) = \sum_{l=0}^{depth} \sum_c \#_l(c, G) \cdot \#_l(c, H)

    The columns are the colours of the fitted graphs. Other colours of transformed graphs are dropped; ``unseen_``
    (depth + 1,) counts their nodes in the last call of `transform`. Graphs are what `as_graph_set` reads.

    Args:
        method: "1-wl" or "e-wl".
        depth: Maximum depth.
        normalize: Divide by :math:`\sqrt{k(G, G) k(H, H)}`, dropped colours included.
        attributes: False ignores continuous attributes.
        decimals: Round real labels first.

    >>> from egin_dgl.data import bonds
    >>> WLKernel(depth=1).fit_transform(bonds(graphs=4)).shape
    (4, 9)
    """

    def __init__(
        self,
        method: str = "e-wl",
        depth: int = 5,
        normalize: bool = False,
        attributes: bool = True,
        decimals: int | None = None,
    ):
        self.method = method
        self.depth = depth
        self.normalize = normalize
        self.attributes = attributes
        self.decimals = decimals

    def fit(self, graphs: object, y: object = None) -> "WLKernel":
        self.fit_transform(graphs)
        return self

    def fit_transform(self, graphs: object, y: object = None) -> sparse.csr_array:
        refinement = refine(self._read(graphs), self.method, self.depth)
        self.vocabulary_ = ColorVocabulary.from_refinement(refinement)
        return self._count(refinement.graphs, refinement.colors)

    def transform(self, graphs: object) -> sparse.csr_array:
        """Counts, (G, number of fitted colours at all depths)."""
        check_is_fitted(self, "vocabulary_")
        graphs = self._read(graphs)
        return self._count(graphs, self.vocabulary_.lookup(graphs))

    def gram(self, graphs: object, others: object = None) -> np.ndarray:
        """The kernel between two lists of graphs, (G, H), or within one, (G, G)."""
        rows = self.transform(graphs)
        columns = rows if others is None else self.transform(others)
        return (rows @ columns.T).toarray()

    def _read(self, graphs: object) -> GraphSet:
        return as_graph_set(graphs, decimals=self.decimals, attributes=self.attributes)

    def _count(self, graphs: GraphSet, colors: list[np.ndarray]) -> sparse.csr_array:
        self.unseen_ = np.array([np.count_nonzero(level == UNSEEN) for level in colors])
        sizes = self.vocabulary_.sizes
        blocks = [color_counts(graphs, level, size) for level, size in zip(colors, sizes, strict=True)]
        counts = sparse.hstack(blocks, format="csr")
        if not self.normalize:
            return counts
        own = refine(graphs, self.method, self.depth)  # includes unseen colours
        histograms = [own.graph_histograms(d) for d in range(self.depth + 1)]
        square = sum(np.asarray(h.multiply(h).sum(axis=1)).reshape(-1) for h in histograms)
        length = np.sqrt(np.repeat(square, np.diff(counts.indptr)))
        return sparse.csr_array((counts.data / length, counts.indices, counts.indptr), shape=counts.shape)


class Gram(TransformerMixin, BaseEstimator):
    """Dot products with the fitted rows, for a precomputed kernel: (G, F) -> (G, fitted)."""

    def fit(self, rows: sparse.csr_array, y: object = None) -> "Gram":
        self.rows_ = rows
        return self

    def transform(self, rows: sparse.csr_array) -> np.ndarray:
        return (rows @ self.rows_.T).toarray()


def make_svm(
    kind: str = "linear",
    C: float = 1.0,
    method: str = "e-wl",
    depth: int = 5,
    normalize: bool = True,
    attributes: bool = True,
    decimals: int | None = None,
    class_weight: str | dict | None = None,
    seed: int = 0,
    max_iter: int = 10_000,
) -> Pipeline:
    """A support vector machine on the kernel: "linear" (LinearSVC on counts) or "precomputed" (SVC on the Gram matrix)."""
    kernel = WLKernel(method, depth, normalize, attributes, decimals)
    if kind == "linear":
        svm = LinearSVC(C=C, class_weight=class_weight, random_state=seed, max_iter=max_iter)
        return Pipeline([("kernel", kernel), ("svm", svm)])
    if kind == "precomputed":
        svm = SVC(C=C, kernel="precomputed", class_weight=class_weight)
        return Pipeline([("kernel", kernel), ("gram", Gram()), ("svm", svm)])
    raise ConfigError(f"kind must be linear or precomputed, got {kind!r}")


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """A fitted machine as plain arrays, for saving and prediction: linear functions of the counts.

    There is one function for two classes, else one for each class (`LinearSVC`) or, if `by_pairs`, one for each pair of
    classes, which vote (`SVC`).
    """

    kernel: WLKernel  # fitted
    coefficients: np.ndarray  # (F, colours)
    intercepts: np.ndarray  # (F,)
    classes: np.ndarray  # numbers of the classes of the training graphs
    by_pairs: bool

    @classmethod
    def from_pipeline(cls, kernel: WLKernel, machine: Pipeline) -> "KernelMachine":
        """The fitted steps of `make_svm`."""
        svm = machine[-1]
        by_pairs = isinstance(svm, SVC)
        coefficients = _pair_coefficients(svm, machine["gram"].rows_) if by_pairs else svm.coef_
        return cls(kernel, coefficients, svm.intercept_, svm.classes_, by_pairs)

    def logits(self, graphs: object, classes: int) -> Tensor:
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
        colors = self.kernel.vocabulary_
        found = {"coefficients": self.coefficients, "intercepts": self.intercepts, "classes": self.classes}
        found |= {"by_pairs": np.array(self.by_pairs)}
        found |= {"node_labels": colors.node_labels, "edge_labels": colors.edge_labels}
        for depth, level in enumerate(colors.levels, start=1):
            found |= {f"depth{depth}.{name}": array for name, array in vars(level).items()}
        return found

    @classmethod
    def from_arrays(cls, kernel: WLKernel, arrays: Mapping[str, np.ndarray]) -> "KernelMachine":
        """Restore the result of `arrays`, with an unfitted kernel of the same options."""
        try:
            levels = [
                Signatures(*(arrays[f"depth{depth}.{field.name}"] for field in fields(Signatures)))
                for depth in range(1, kernel.depth + 1)
            ]
            labels = arrays["node_labels"], arrays["edge_labels"]
            kernel.vocabulary_ = ColorVocabulary(kernel.method, *labels, levels)
            functions = arrays["coefficients"], arrays["intercepts"], arrays["classes"]
            return cls(kernel, *functions, bool(arrays["by_pairs"]))
        except KeyError as error:
            raise DataError(f"not a saved kernel machine: {error} is missing") from None


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
