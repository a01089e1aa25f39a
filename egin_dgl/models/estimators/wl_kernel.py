"""Support vector machines on the Weisfeiler-Lehman subtree kernel, with edges or without."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator
from scipy import sparse

from egin_dgl.data.dataset import DatasetInfo, GraphDataset, Indices
from egin_dgl.ewl.inputs import GraphSet, as_graph_set
from egin_dgl.models.estimators.sklearn_model import Arrays, Features, Machine, SklearnModel, fit_each_target
from egin_dgl.options import Decimals, Depth, Positive, parse_bool


class WLKernelSVM(SklearnModel):
    """Counts of refinement colours at the depths 0..depth, and a machine on them; see `egin_dgl.ewl.WLKernel`.

    Classes have one machine for all of them; labels and values have one for each target, see `egin_dgl.ewl.make_svm`. It
    is fitted once per penalty instead of once per epoch.

    Args:
        info: sizes and targets of the data.
        method: e-wl (sees edges) or 1-wl.
        depth: rounds of refinement.
        penalties: values of C to try; a smaller one comes first, as it wins where score and loss are equal.
        kind: linear (on sparse counts) or precomputed (on the Gram matrix).
        normalize: divide by the norm of a graph's counts. Such counts forget the size of a graph, which many values depend on:
            auto normalizes for classes and labels only.
        attributes: let continuous attributes count as labels (equal vectors, equal label).
        decimals: to which they are rounded first; None: not at all.
    """

    has_probabilities = False

    def __init__(
        self,
        info: DatasetInfo,
        method: Literal["1-wl", "e-wl"] = "e-wl",
        depth: Depth = 5,
        penalties: Sequence[Positive] = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
        kind: Literal["linear", "precomputed"] = "linear",
        normalize: Annotated[Literal["auto", True, False], BeforeValidator(parse_bool)] = "auto",
        attributes: bool = False,
        decimals: Decimals | None = None,
    ):
        super().__init__(info)
        self.method, self.depth, self.kind = method, depth, kind
        self.normalize = info.task != "regression" if normalize == "auto" else normalize
        self.attributes, self.decimals = attributes, decimals
        self.candidates = self.penalties = sorted(float(penalty) for penalty in penalties)
        if not self.penalties or self.penalties[0] <= 0:
            raise ValueError(f"penalties must be positive numbers, got {list(penalties)}")
        # Wrong options are reported before any fold starts.
        self.make_machine(self.penalties[0], 0)
        self.make_features()

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{'E-WL' if self.method == 'e-wl' else '1-WL'} kernel"

    def read(self, dataset: GraphDataset, indices: Indices | None = None) -> GraphSet:
        graphs = as_graph_set(dataset, attributes=self.attributes, decimals=self.decimals)
        return graphs if indices is None else graphs.subset(indices)

    def make_features(self) -> Features:
        from egin_dgl.ewl.kernel import WLKernel

        return WLKernel(self.method, self.depth, self.normalize, self.attributes, self.decimals)

    def make_machine(self, penalty: float, seed: int, balanced: bool = False):
        """The pipeline of `make_svm` without its kernel, whose counts are the same for every penalty."""
        from egin_dgl.ewl.kernel import make_svm

        svm = make_svm(
            self.kind,
            penalty,
            self.method,
            self.depth,
            class_weight="balanced" if balanced else None,
            seed=seed,
            regression=self.info.task == "regression",
        )
        return svm[1:]

    def fit(
        self,
        rows: sparse.csr_array,
        targets: np.ndarray,
        candidate: float | None,
        seed: int,
        balanced: bool = False,
    ) -> Machine:
        from egin_dgl.ewl.machine import KernelMachine, linear_function

        if candidate is None:
            raise ValueError("a kernel machine needs a penalty")
        if self.info.classes:
            machine = self.make_machine(candidate, seed, balanced).fit(rows, targets)
            return KernelMachine.from_pipeline(machine, self.info.classes)

        def fit(known: sparse.csr_array, values: np.ndarray) -> tuple[np.ndarray, float]:
            return linear_function(self.make_machine(candidate, seed, balanced).fit(known, values))

        def constant(value: float) -> tuple[np.ndarray, float]:
            # As far from the boundary as a support vector; a standardised value that is constant is 0.
            margin = 0.0 if self.info.task == "regression" or np.isnan(value) else 2 * value - 1
            return np.zeros(rows.shape[1]), margin

        return KernelMachine.from_functions(fit_each_target(fit, constant, rows, targets))

    def load_machine(self, arrays: Arrays, num_features: int) -> Machine:
        from egin_dgl.ewl.machine import KernelMachine

        return KernelMachine.from_arrays(arrays, self.info.classes, num_features)
