"""Random forests on counts of substructures: E-WL colours of any graph, Morgan fingerprints of molecules."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from scipy import sparse
from torch import Tensor, from_numpy, get_num_threads

from egin_dgl.data.dataset import DatasetInfo, GraphDataset, Indices
from egin_dgl.data.fingerprints import MorganFingerprints
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.models.estimators.sklearn_model import Arrays, Features, Machine, SklearnModel, fit_each_target
from egin_dgl.models.estimators.trees import MAX_DEPTH, Trees
from egin_dgl.options import Count, Decimals, Depth

MIN_PROBABILITY = 1e-4  # a class that no tree votes for has a finite log loss


@dataclass(frozen=True, eq=False)
class Forest:
    r"""Fitted forests: one for all classes, or one for each target.

    Outputs are log p of classes, log-odds of labels, both with p at least MIN_PROBABILITY, or values.
    """

    trees: Trees
    task: str

    @property
    def parameters(self) -> int:
        """Number of nodes."""
        return len(self.trees.left)

    def outputs(self, rows: sparse.csr_array) -> Tensor:
        means = self.trees.mean_values(rows)  # (G, 1, classes) or (G, T, 1)
        means = means.reshape(len(means), means.shape[1] * means.shape[2])
        if self.task == "regression":
            return from_numpy(means)
        p = means.clip(MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        return from_numpy(np.log(p) if self.task == "multiclass" else np.log(p / (1 - p)))

    def arrays(self) -> Arrays:
        return {f"trees.{name}": array for name, array in vars(self.trees).items()}


PositiveFraction = Annotated[float, Field(gt=0, le=1)]


class ForestModel(SklearnModel):
    """A forest of scikit-learn, one for all classes or one for each target; a subclass has the features."""

    has_probabilities = True

    def __init__(self, info: DatasetInfo, num_trees: int, max_features: float | str, min_samples_leaf: int):
        super().__init__(info)
        self.num_trees, self.min_samples_leaf = num_trees, min_samples_leaf
        default = 1 / 3 if info.task == "regression" else "sqrt"
        self.max_features = default if max_features == "auto" else max_features

    def make_forest(self, seed: int, balanced: bool = False) -> Any:
        """An unfitted forest of scikit-learn."""
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        options: dict[str, Any] = {
            "n_estimators": self.num_trees,
            "max_features": self.max_features,
            "min_samples_leaf": self.min_samples_leaf,
            "max_depth": MAX_DEPTH,
            "random_state": seed,
            "n_jobs": get_num_threads(),  # trees do not depend on it
        }
        if self.info.task == "regression":
            return RandomForestRegressor(**options)
        return RandomForestClassifier(**options, class_weight="balanced" if balanced else None)

    def fit(
        self,
        rows: sparse.csr_array,
        targets: np.ndarray,
        candidate: float | None,
        seed: int,
        balanced: bool = False,
    ) -> Machine:
        def fit(known: sparse.csr_array, values: np.ndarray) -> list[Trees]:
            forest = self.make_forest(seed, balanced).fit(known, values)
            trees = [estimator.tree_ for estimator in forest.estimators_]
            return [Trees.from_tree(tree, self.leaf_values(forest, tree.value[:, 0])) for tree in trees]

        def constant(value: float) -> list[Trees]:
            unknown = 0.0 if self.info.task == "regression" else 0.5
            return [Trees.leaf(unknown if np.isnan(value) else value)] * self.num_trees

        several = not self.info.classes
        forests = fit_each_target(fit, constant, rows, targets) if several else [fit(rows, targets)]
        return Forest(Trees.join(forests), self.info.task)

    def leaf_values(self, forest: Any, value: np.ndarray) -> np.ndarray:
        """Values of a tree's nodes (nodes, K): p of every class, p of a label, or the value."""
        if self.info.task == "regression":
            return value
        p = np.zeros((len(value), self.info.classes or 2))
        p[:, forest.classes_.astype(np.int64)] = value
        return p if self.info.classes else p[:, 1:]

    def load_machine(self, arrays: Arrays, num_features: int) -> Machine:
        prefix = "trees."
        named = {
            name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)
        }
        trees, targets = Trees.from_arrays(named, num_features), len(self.info.target_names)
        expected = (1, self.info.classes) if self.info.classes else (targets, 1)
        if (len(trees.roots), trees.value.shape[1]) != expected:
            raise DataError(f"not a saved forest of {self.info.outputs} outputs")
        return Forest(trees, self.info.task)


class EWLForest(ForestModel):
    """A random forest on counts of E-WL colours: circular fingerprints of any graph, without collisions.

    Args:
        info: sizes and targets of the data.
        method: e-wl (sees edges) or 1-wl.
        depth: rounds of refinement, the radius of the fingerprints.
        num_trees: of a forest.
        max_features: features to choose a split from: a fraction, sqrt of their number, or auto (sqrt, a third for values).
        min_samples_leaf: graphs in a leaf.
        attributes: let continuous attributes count as labels (equal vectors, equal label).
        decimals: to which they are rounded first; None: not at all.
    """

    def __init__(
        self,
        info: DatasetInfo,
        method: Literal["1-wl", "e-wl"] = "e-wl",
        depth: Depth = 2,
        num_trees: Count = 200,
        max_features: PositiveFraction | Literal["auto", "sqrt"] = "auto",
        min_samples_leaf: Count = 1,
        attributes: bool = False,
        decimals: Decimals | None = None,
    ):
        super().__init__(info, num_trees, max_features, min_samples_leaf)
        self.method, self.depth, self.attributes, self.decimals = method, depth, attributes, decimals

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{'E-WL' if self.method == 'e-wl' else '1-WL'} forest"

    def read(self, dataset: GraphDataset, indices: Indices | None = None) -> GraphSet:
        graphs = as_graph_set(dataset, attributes=self.attributes, decimals=self.decimals)
        return graphs if indices is None else graphs.subset(indices)

    def make_features(self) -> Features:
        from egin_dgl.ewl.kernel import WLKernel

        return WLKernel(self.method, self.depth, False, self.attributes, self.decimals)


class MorganForest(ForestModel):
    """A random forest on Morgan fingerprints (ECFP) of molecules, which need their SMILES.

    Args:
        info: sizes and targets of the data.
        radius: of the environments of atoms; 2 is ECFP4.
        bins: length of a fingerprint.
        num_trees: of a forest.
        max_features: features to choose a split from: a fraction, sqrt of their number, or auto (sqrt, a third for values).
        min_samples_leaf: graphs in a leaf.
    """

    name = "Morgan forest"

    def __init__(
        self,
        info: DatasetInfo,
        radius: Depth = 2,
        bins: Count = 2048,
        num_trees: Count = 200,
        max_features: PositiveFraction | Literal["auto", "sqrt"] = "auto",
        min_samples_leaf: Count = 1,
    ):
        super().__init__(info, num_trees, max_features, min_samples_leaf)
        self.radius, self.bins = radius, bins

    def check_dataset(self, dataset: GraphDataset) -> None:
        if len(dataset.smiles) != len(dataset):
            raise ConfigError(
                "model=morgan_forest is for molecules: use dataset=smiles, or model=ewl_forest for other graphs"
            )

    def read(self, dataset: GraphDataset, indices: Indices | None = None) -> list[str]:
        if len(dataset.smiles) != len(dataset):
            raise DataError("the Morgan forest needs molecules as SMILES, and no parts of them")
        numbers = range(len(dataset)) if indices is None else np.asarray(indices).tolist()
        return [dataset.smiles[number] for number in numbers]

    def make_features(self) -> Features:
        return MorganFingerprints(self.radius, self.bins)
