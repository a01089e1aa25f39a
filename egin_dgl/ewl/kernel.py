"""The Weisfeiler-Lehman subtree kernel with (E-WL) or without (1-WL) edge labels, and support vector machines on it."""

from collections.abc import Mapping
from dataclasses import fields

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.utils.validation import check_is_fitted

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

    @property
    def size(self) -> int:
        """Number of columns."""
        check_is_fitted(self, "vocabulary_")
        return sum(self.vocabulary_.sizes)

    def arrays(self) -> dict[str, np.ndarray]:
        """The fitted colours; without the options of the kernel."""
        check_is_fitted(self, "vocabulary_")
        colors = self.vocabulary_
        found = {"node_labels": colors.node_labels, "edge_labels": colors.edge_labels}
        for depth, level in enumerate(colors.levels, start=1):
            found |= {f"depth{depth}.{name}": array for name, array in vars(level).items()}
        return found

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore the result of `arrays` of a kernel with the same options."""
        try:
            levels = [
                Signatures(*(arrays[f"depth{depth}.{field.name}"] for field in fields(Signatures)))
                for depth in range(1, self.depth + 1)
            ]
            labels = arrays["node_labels"], arrays["edge_labels"]
        except KeyError as error:
            raise DataError(f"not saved colours: {error} is missing") from None
        self.vocabulary_ = ColorVocabulary(self.method, *labels, levels)

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
    regression: bool = False,
) -> Pipeline:
    r"""A support vector machine on the kernel: "linear" (on counts) or "precomputed" (on the Gram matrix).

    For classes they are `LinearSVC` and `SVC`. For values, if `regression`, "precomputed" is `SVR`, and "linear" is kernel
    ridge regression, in the primal so that it scales to many graphs (the intercept b counts as a coefficient):

    .. math:: \min_{w, b} \tfrac12 (|w|^2 + b^2) + C \sum_i (y_i - w \cdot x_i - b)^2
    """
    kernel = WLKernel(method, depth, normalize, attributes, decimals)
    if kind == "linear":
        svm = LinearSVC(C=C, class_weight=class_weight, random_state=seed, max_iter=max_iter)
        if regression:
            # The squared loss without a margin is that of ridge regression.
            svm = LinearSVR(C=C, epsilon=0.0, loss="squared_epsilon_insensitive", dual=False, tol=1e-6)
        return Pipeline([("kernel", kernel), ("svm", svm)])
    if kind == "precomputed":
        svm = SVC(C=C, kernel="precomputed", class_weight=class_weight)
        if regression:
            svm = SVR(C=C, kernel="precomputed")
        return Pipeline([("kernel", kernel), ("gram", Gram()), ("svm", svm)])
    raise ConfigError(f"kind must be linear or precomputed, got {kind!r}")
