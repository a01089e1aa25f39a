"""Trees: the decision trees of random forests as flat arrays, for saving and prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from egin_dgl.data.ragged import offsets_of
from egin_dgl.errors import DataError

MAX_DEPTH = 1000  # of a tree; deeper ones are not grown and not loaded
MAX_CELLS = 2**22  # of the dense rows and of the positions in the trees, at a time
LEAF = -1


@dataclass(frozen=True, eq=False)
class Trees:
    """T forests of B trees with M nodes in total; a node with a child has two, both behind it in the arrays.

    A row x goes from node i to ``left[i]`` if ``x[feature[i]] <= threshold[i]``, else to ``right[i]``.
    """

    roots: np.ndarray  # (T, B) int32
    left: np.ndarray  # (M,) int32, LEAF at a leaf
    right: np.ndarray
    feature: np.ndarray  # (M,) int32, 0 at a leaf
    threshold: np.ndarray  # (M,) float64
    value: np.ndarray  # (M, K) float64: what a leaf predicts

    @classmethod
    def join(cls, forests: Sequence[Sequence["Trees"]]) -> "Trees":
        """Forests with equal numbers of single trees."""
        singles = [tree for forest in forests for tree in forest]
        first = offsets_of(np.array([len(tree.left) for tree in singles]))[:-1].astype(np.int32)
        joined = {
            name: np.concatenate([getattr(tree, name) for tree in singles])
            for name in ("left", "right", "feature", "threshold", "value")
        }
        shift = np.repeat(first, [len(tree.left) for tree in singles])
        for name in ("left", "right"):
            joined[name] += np.where(joined[name] == LEAF, 0, shift)
        return cls(first.reshape(len(forests), -1), **joined)

    @classmethod
    def from_tree(cls, tree: Any, value: np.ndarray) -> "Trees":
        """A fitted tree of scikit-learn; `value` (nodes, K) is what its leaves predict."""
        inner = tree.children_left != LEAF
        return cls(
            roots=np.zeros((1, 1), np.int32),
            left=tree.children_left.astype(np.int32),
            right=tree.children_right.astype(np.int32),
            feature=np.where(inner, tree.feature, 0).astype(np.int32),
            threshold=np.where(inner, tree.threshold, 0.0),
            value=value,
        )

    @classmethod
    def leaf(cls, value: float) -> "Trees":
        """A tree that predicts one value for all rows."""
        none, zero = np.array([LEAF], np.int32), np.zeros(1, np.int32)
        return cls(zero[None], none, none, zero, np.zeros(1), np.array([[value]]))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], num_features: int) -> "Trees":
        """Restore `vars` of trees on rows (G, num_features); arrays that are no trees, in which a row could be lost or circle, raise a DataError."""
        try:
            trees = cls(**{field.name: arrays[field.name] for field in fields(cls)})
        except KeyError as error:
            raise DataError(f"not a saved forest: {error} is missing") from None
        trees.check(num_features)
        return trees

    def check(self, num_features: int) -> None:
        """Raise a DataError where these are no trees."""
        for name, array in vars(self).items():
            kind, ndim = (
                ("f" if name in ("threshold", "value") else "i"),
                (2 if name in ("roots", "value") else 1),
            )
            if array.dtype.kind != kind or array.ndim != ndim or not array.size:
                raise DataError(f"not a saved forest: {name} is an array of {array.dtype} {array.shape}")
            if name != "roots" and len(array) != len(self.left):
                raise DataError(
                    f"not a saved forest: {name} has {len(array)} rows, left has {len(self.left)}"
                )
        inner = self.left != LEAF
        children = np.concatenate([self.left[inner], self.right[inner]])
        nodes = np.concatenate([children, self.roots.reshape(-1)])
        conditions = {
            "a node has one child": np.array_equal(inner, self.right != LEAF),
            "a node is missing": nodes.min() >= 0 and nodes.max() < len(inner),
            "a child is not behind its node": (children > np.tile(np.flatnonzero(inner), 2)).all(),
            "a node has two parents": len(np.unique(nodes)) == len(nodes),
            f"a feature is not one of {num_features}": 0
            <= self.feature.min()
            <= self.feature.max()
            < num_features,
            "a number is not finite": np.isfinite(self.threshold).all() and np.isfinite(self.value).all(),
        }
        for reason, holds in conditions.items():
            if not holds:
                raise DataError(f"not a saved forest: {reason}")
        level, depth = self.roots.reshape(-1), 0
        while len(level := level[inner[level]]):
            level, depth = np.concatenate([self.left[level], self.right[level]]), depth + 1
            if depth > MAX_DEPTH:
                raise DataError(f"not a saved forest: a tree is deeper than {MAX_DEPTH}")

    def mean_values(self, rows: sparse.csr_array) -> np.ndarray:
        """Mean over the trees of each forest of the values of the leaves that rows (G, F) reach: (G, T, K)."""
        used, feature = np.unique(self.feature, return_inverse=True)
        rows = rows.tocsc()[:, used].tocsr()
        size = max(1, MAX_CELLS // max(len(used), self.roots.size))
        forests, trees = self.roots.shape
        means = np.zeros((rows.shape[0], forests, self.value.shape[1]))
        for start in range(0, rows.shape[0], size):
            # Trees compare numbers as scikit-learn does, in single precision.
            dense = rows[start : start + size].toarray().astype(np.float32)
            leaves = self._leaves(dense, feature.reshape(-1)).reshape(forests, trees, len(dense))
            for number in range(trees):  # in the order of scikit-learn, so that sums round alike
                means[start : start + size] += self.value[leaves[:, number]].transpose(1, 0, 2)
        return means / trees

    def _leaves(self, dense: np.ndarray, feature: np.ndarray) -> np.ndarray:
        """The leaf that each row (G,) reaches in each of the trees: (trees, G)."""
        node = np.repeat(self.roots.reshape(-1), len(dense))
        row = np.tile(np.arange(len(dense)), self.roots.size)
        moving = np.arange(len(node))
        while len(moving := moving[self.left[node[moving]] != LEAF]):
            at = node[moving]
            goes_left = dense[row[moving], feature[at]] <= self.threshold[at]
            node[moving] = np.where(goes_left, self.left[at], self.right[at])
        return node.reshape(self.roots.size, len(dense))
